"""Adapt the windows (ranges of days) of figures to the plays in the database."""

from peewee import fn

from musicsvc.store.models import EngagementDay
from musicsvc.store.plays.periods import ALL, Window
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import TRACK


def adapt(window: Window) -> Window:
    """Return the window, changed so that this database has the counts for it.

    The window `all` begins on the day of the first play, like or repost. If the earlier window that it is compared with
    ends within a day whose single plays were deleted, the earlier window is extended to the end of that day.
    """
    if window.name != ALL and window.compared_with is None:
        return window
    done = blocks.progress()
    if window.compared_with is not None:
        return window._replace(compared_with=window.compared_with.countable(done.kept_from))
    first_given = EngagementDay.select(fn.MIN(EngagementDay.day)).where(EngagementDay.kind == TRACK).scalar()
    first = min(day for day in (done.first, first_given, window.end - 1) if day is not None)
    return window._replace(first=first)
