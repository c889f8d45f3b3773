"""Charts: plays, listeners, likes and reposts of a subject by day, and of the whole window."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from musicsvc.store.insights import engagement
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.rollups.reader import NO_PLAYS, Reader

if TYPE_CHECKING:
    from musicsvc.store.plays.periods import Window
    from musicsvc.store.plays.subjects import Subject


class Point(NamedTuple):
    """Plays and distinct listeners of a day or window, and the likes and reposts from then that still exist."""

    plays: int
    listeners: int
    likes: int
    reposts: int


class Chart(NamedTuple):
    """A point for each day of the window and one for the whole window, which counts a listener of several days once."""

    window: Window
    points: list[Point]
    totals: Point


def build(subject: Subject, window: Window) -> Chart:
    """Build the chart of a window, including days without plays."""
    given = engagement.by_day(subject.kind, [subject.id], window)
    days = reader.days(subject.kind, [subject.id], window.numbers)
    points = []
    for day in window.numbers:
        stats = days.get(day, NO_PLAYS)
        points.append(Point(stats.plays, len(stats.listeners), given.likes[day], given.reposts[day]))
    ((whole,),) = Reader(window, all_time=False).read(subject.kind, [subject.id]).values()
    totals = Point(whole.plays, len(whole.listeners), given.likes.total(), given.reposts.total())
    return Chart(window, points, totals)
