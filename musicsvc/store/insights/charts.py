"""Charts of a track, album, artist or account: plays, listeners, likes and reposts for each day."""

from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from musicsvc.store.insights import engagement
from musicsvc.store.plays.periods import Window, to_date
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import Subject

Interval = Literal["day", "week", "month"]
INTERVALS: tuple[Interval, ...] = get_args(Interval)
BY_DAY, BY_WEEK = 92, 731  # days of the longest windows whose charts are by day and by week
DAYS_OF_WEEK, FIRST_MONDAY = 7, 4  # since 1970-01-01


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


class CurvePoint(NamedTuple):
    """Plays and distinct listeners on the days of a week, of a month, or on one day. The window may cut the days."""

    days: range
    plays: int
    listeners: int


def interval_of(window: Window) -> Interval:
    """Return the interval of a chart that shows the window with a readable number of points."""
    return "day" if window.days <= BY_DAY else "week" if window.days <= BY_WEEK else "month"


def curve(subject: Subject, window: Window, interval: Interval) -> list[CurvePoint]:
    """Return plays and listeners by day, week (from Monday) or month. A listener of several days of one counts once."""
    parts = _parts(window, interval)
    if interval == "day":
        found = reader.counts_by_day(*subject, window.numbers)
        return [CurvePoint(days, *found.get(days.start, (0, 0))) for days in parts]
    return [CurvePoint(days, *some) for days, some in zip(parts, reader.counts_of(*subject, parts), strict=True)]


def _parts(window: Window, interval: Interval) -> list[range]:
    """Return the days, weeks or months of the window; the first and the last may be cut."""
    starts = [day for day in window.numbers if day == window.first or _begins(day, interval)]
    return [range(*some) for some in pairwise([*starts, window.end])]


def _begins(day: int, interval: Interval) -> bool:
    if interval == "month":
        return to_date(day).day == 1
    return interval == "day" or (day - FIRST_MONDAY) % DAYS_OF_WEEK == 0


def build(subject: Subject, window: Window) -> Chart:
    """Return the chart of a track, album or artist over a range of days, including days without plays."""
    given = engagement.by_day(subject.kind, [subject.id], window)
    days = zip(window.numbers, by_day(subject, window.numbers), strict=True)
    points = [Point(*heard, given.likes[day], given.reposts[day]) for day, heard in days]
    ((whole,),) = Reader(window, all_time=False).read(subject.kind, [subject.id]).values()
    totals = Point(whole.plays, len(whole.listeners), given.likes.total(), given.reposts.total())
    return Chart(window, points, totals)


def by_day(subject: Subject, days: range) -> list[tuple[int, int]]:
    """Return the plays and listeners of a track, album or artist on each of the days, including days without plays."""
    found = reader.counts_by_day(*subject, days)
    return [found.get(day, (0, 0)) for day in days]
