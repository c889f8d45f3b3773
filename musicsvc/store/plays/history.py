"""Adapt the windows (ranges of days) of statistics to the plays in the database."""

from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import daily
from musicsvc.store.plays.periods import ALL, Window
from musicsvc.store.plays.subjects import TRACK

FIRST_DAYS = f"""
    SELECT {daily.FIRST} UNION ALL SELECT min(day) FROM engagement_day WHERE kind = ?
"""  # noqa: S608 - our own names
KEPT_FROM = "SELECT kept_from FROM play_mark"


def adapt(window: Window) -> Window:
    """Return the window, changed so that this database has the counts for it.

    The window `all` begins on the day of the first play, like or repost. If the earlier window that it is compared with
    ends within a day whose single plays were deleted, the earlier window is extended to the end of that day.
    """
    if window.name == ALL:
        first = min((day for (day,) in fetch(FIRST_DAYS, TRACK) if day is not None), default=window.end - 1)
        return window._replace(first=min(first, window.end - 1))
    if window.compared_with is None:
        return window
    ((kept_from,),) = fetch(KEPT_FROM)
    return window._replace(compared_with=window.compared_with.countable(kept_from))
