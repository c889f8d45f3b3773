"""Charts of a track, album or artist: plays, listeners, likes and reposts for each day."""

from typing import NamedTuple

from musicsvc.store.insights import engagement
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import Subject


class Point(NamedTuple):
    """Plays, distinct listeners, likes and reposts on a day or in a range of days. Undone likes are left out."""

    plays: int
    listeners: int
    likes: int
    reposts: int


class Chart(NamedTuple):
    """A point for each day, and a point of totals. In the totals, a listener of several days counts once."""

    window: Window
    points: list[Point]
    totals: Point


def build(subject: Subject, window: Window) -> Chart:
    """Return the chart of a track, album or artist over a range of days, including days without plays."""
    given = engagement.by_day(subject.kind, [subject.id], window)
    days = reader.counts_by_day(*subject, window.numbers)
    points = [Point(*days.get(day, (0, 0)), given.likes[day], given.reposts[day]) for day in window.numbers]
    ((whole,),) = Reader(window, all_time=False).read(subject.kind, [subject.id]).values()
    totals = Point(whole.plays, len(whole.listeners), given.likes.total(), given.reposts.total())
    return Chart(window, points, totals)


def plays_by_day(subject: Subject, days: range) -> list[int]:
    """Return the plays of a track, album or artist on each of the days, including days without plays."""
    found = reader.counts_by_day(*subject, days)
    return [found.get(day, (0, 0))[0] for day in days]
