"""Skips, completion, plays per listener, new and returning listeners, and plays by hour of the week."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from musicsvc.store.insights.figures import ratio
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups.histograms import Histogram
from musicsvc.store.plays.rollups.reader import PlayStats, Reader
from musicsvc.store.plays.subjects import Subject

DAYS_OF_WEEK, HOURS_OF_DAY = 7, 24


class Completion(NamedTuple):
    """Mean and median of completion: the percentage of the track that was played. None if no play has a known one."""

    mean: float | None
    median: float | None


class Listening(NamedTuple):
    """Statistics of plays and listeners in a window. `with_duration`: the number of plays with known completion."""

    window: Window
    with_duration: int
    skips: int
    completion: Completion
    plays_per_listener: float | None
    new_listeners: int
    returning_listeners: int


class Hours(NamedTuple):
    """The plays in a window: a row for each day of the week, Monday first, with a number for each hour in UTC."""

    window: Window
    plays: list[Sequence[int]]


def build(subject: Subject, window: Window) -> Listening:
    """Return skips, completion, and new and returning listeners of a track, album or artist in the window."""
    reader = Reader(Window("", 0, window.first), window, all_time=False)
    earlier, within = reader.read(subject.kind, [subject.id])[subject.id]
    returning = within.listeners.intersection_cardinality(earlier.listeners)
    return assemble(window, histogram(subject, window), within, returning)


def assemble(window: Window, measured: Histogram, within: PlayStats, returning: int) -> Listening:
    """Build the statistics of a window from its histogram, its plays, and its number of returning listeners."""
    listeners = len(within.listeners)
    return Listening(
        window=window,
        with_duration=sum(measured.completions),
        skips=sum(measured.skipped),
        completion=summarize(measured.completions),
        plays_per_listener=per_listener(within.plays, listeners),
        new_listeners=listeners - returning,
        returning_listeners=returning,
    )


def hours(subject: Subject, window: Window) -> Hours:
    """Return the plays of a track, album or artist in the window by hour of the week."""
    return Hours(window, by_day(histogram(subject, window).hours))


def histogram(subject: Subject, window: Window) -> Histogram:
    """Return the histogram (hours and completion) of the plays of a track, album or artist in the window."""
    return Reader(window, all_time=False).histogram(subject.kind, [subject.id])


def by_day(plays: Sequence[int]) -> list[Sequence[int]]:
    """Split the 168 hourly numbers of a week, from Monday 00:00, into a row for each day."""
    return [plays[day * HOURS_OF_DAY : (day + 1) * HOURS_OF_DAY] for day in range(DAYS_OF_WEEK)]


def summarize(plays: Sequence[int]) -> Completion:
    """Return mean (one decimal) and median completion. `plays[n]` is the number of plays with a completion of n %."""
    count = sum(plays)
    if not count:
        return Completion(None, None)
    heard = sum(percent * number for percent, number in enumerate(plays))
    up_to = list(accumulate(plays))
    middle = (_percent(up_to, (count - 1) // 2), _percent(up_to, count // 2))
    return Completion(ratio(heard, count, 1), sum(middle) / 2)


def _percent(up_to: Sequence[int], place: int) -> int:
    """Return the completion of the play at index `place`, if plays are sorted by completion.

    `up_to[n]` is the number of plays with a completion of n % or less.
    """
    return next(percent for percent, plays in enumerate(up_to) if place < plays)


def per_listener(plays: int, listeners: int) -> float | None:
    """Return the plays per listener with two decimals, or None without listeners."""
    return ratio(plays, listeners, 2) if listeners else None
