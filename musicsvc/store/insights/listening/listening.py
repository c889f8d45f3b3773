"""Skips, completion, plays per listener, new and returning listeners, and plays by hour of the week."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from musicsvc.store.insights.figures import Figure, ratio
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
    """Figures of the plays and listeners in a window. `mean` and `median` are those of completion."""

    window: Window
    plays_with_duration: int
    skips: int
    mean: float | None
    median: float | None
    plays_per_listener: float | None
    new_listeners: int
    returning_listeners: int


# fmt: off
LISTENING = (
    Figure("plays_with_duration", "plays_with_duration", 380, "Plays with a duration",
           "Plays with a duration, of tracks of known length. Only these count for skips and completion.", card=False),
    Figure("skips", "skips", 41, "Skips", "Plays shorter than 30 seconds and shorter than half of the track.",
           "of {plays_with_duration} with a duration"),
    Figure("mean", "completion.mean", 83.4, "Completion",
           "The share of the track that was heard, in percent; null if no play has a known share.",
           "on average, median {completion.median} %", unit="%"),
    Figure("median", "completion.median", 97.5, "Median completion", "The median of these shares.", unit="%",
           card=False),
    Figure("plays_per_listener", "plays_per_listener", 2.2, "Plays per listener",
           "Two decimals; null if nobody listened."),
    Figure("new_listeners", "new_listeners", 64, "New listeners",
           "Listeners whose first play of all time is in the period.", "first play in this period", all_time=True),
    Figure("returning_listeners", "returning_listeners", 123, "Returning listeners",
           "Listeners who had also played before the period.", "had played before", all_time=True),
)
# fmt: on


class Hours(NamedTuple):
    """The plays in a window: a row for each day of the week, Monday first, with a number for each hour in UTC."""

    window: Window
    plays: list[Sequence[int]]


def build(subject: Subject, window: Window) -> tuple[Listening, Hours]:
    """Return the figures of a track, album or artist in the window, and its plays by hour of the week."""
    reader = Reader(Window("", 0, window.first), window, all_time=False)
    earlier, within = reader.read(subject.kind, [subject.id])[subject.id]
    returning = within.listeners.intersection_cardinality(earlier.listeners)
    measured = histogram(subject, window)
    return assemble(window, measured, within, returning), Hours(window, by_day(measured.hours))


def assemble(window: Window, measured: Histogram, within: PlayStats, returning: int) -> Listening:
    """Build the figures of a window from its histogram, its plays, and its number of returning listeners."""
    skips, listeners = sum(measured.skipped), len(within.listeners)
    return of_numbers(window, measured.completions, skips, within.plays, listeners, returning)


def of_numbers(
    window: Window, completions: Sequence[int], skips: int, plays: int, listeners: int, returning: int
) -> Listening:
    """Build the figures of a window. `completions[n]` is the number of plays with a completion of n %."""
    return Listening(
        window=window,
        plays_with_duration=sum(completions),
        skips=skips,
        **summarize(completions)._asdict(),
        plays_per_listener=ratio(plays, listeners, 2) if listeners else None,
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
    if count <= 0:  # of wrong counts, from which others were subtracted
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
