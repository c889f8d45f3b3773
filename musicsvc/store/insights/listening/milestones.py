"""The 100th, 1,000th, 10,000th (and so on) play of a track, album or artist, and the day with the most plays."""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from musicsvc.clock import DAY, HOUR
from musicsvc.store.insights.listening import play_times
from musicsvc.store.insights.listening.play_times import Position
from musicsvc.store.plays.rollups import blocks, counts, histograms, reader
from musicsvc.store.plays.subjects import Subject

FIRST, FACTOR = 100, 10
DAYS = f"SELECT {counts.SUBJECT}, {counts.OF_DAY}, plays FROM {{rows}} ORDER BY key"  # noqa: S608 - our own names
HISTOGRAMS = "SELECT key, histogram FROM {rows}"


class Milestone(NamedTuple):
    """A milestone, such as the 1,000th play: its number, and the time of the play."""

    number: int
    at: int


class BestDay(NamedTuple):
    """The day (days since 1970-01-01) with the most plays; the first one if several days have as many."""

    day: int
    plays: int


class Milestones(NamedTuple):
    """All milestones reached, and the day with the most plays (None without plays)."""

    plays: list[Milestone]
    best_day: BestDay | None


class _Reached(NamedTuple):
    """A milestone of a track, album or artist (id `subject`): the number of the play, such as 1,000, and its day.

    `place` is the position of the play among the plays of that day, from 0.
    """

    subject: int
    number: int
    day: int
    place: int


def build(subject: Subject) -> Milestones:
    """Return the milestones of all time of a track, album or artist.

    If the single plays of a day were deleted, a milestone on that day has the time at which the hour began.
    """
    return build_each(subject.kind, [subject.id])[subject.id]


def build_each(kind: int, ids: Collection[int]) -> dict[int, Milestones]:
    """Return the milestones of tracks, albums or artists by id, in a constant number of queries."""
    by_day: dict[int, list[tuple[int, int]]] = {each: [] for each in ids}
    days = [day for days, some in reader.spans(kind, ids) if some for day in days]
    for subject, day, plays in counts.fetch_rows(DAYS, counts.starts(days), kind, ids):
        by_day[subject].append((day, plays))
    reached = [_Reached(each, *found) for each, some in by_day.items() for found in _reached(some)]
    found: dict[int, list[Milestone]] = {each: [] for each in ids}
    for each, at in zip(reached, _times(kind, reached, blocks.progress().kept_from), strict=True):
        found[each.subject].append(Milestone(each.number, at))
    return {each: Milestones(found[each], _best(some)) for each, some in by_day.items()}


def _best(by_day: list[tuple[int, int]]) -> BestDay | None:
    return BestDay(*max(by_day, key=itemgetter(1))) if by_day else None


def _reached(by_day: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield (number of the play, its day, its index among the plays of that day) for each milestone.

    `by_day` has (day, number of plays), ordered by day.
    """
    totals = list(accumulate(plays for _, plays in by_day))
    goal = FIRST
    while totals and goal <= totals[-1]:
        index = bisect_left(totals, goal)
        day, plays = by_day[index]
        yield goal, day, goal - 1 - (totals[index] - plays)
        goal *= FACTOR


def _times(kind: int, reached: list[_Reached], kept_from: int) -> list[int]:
    """Return the time of each milestone, or the beginning of its hour if single plays of the day were deleted."""
    hours = _hours_of_days(kind, {(each.day, each.subject) for each in reached})
    times: list[int] = []
    positions: dict[int, Position] = {}
    for index, each in enumerate(reached):
        of_day = hours[each.day, each.subject]
        plays = list(accumulate(of_day))
        hour = next(hour for hour, count in enumerate(plays) if each.place < count)
        times.append(each.day * DAY + hour * HOUR)
        if each.day >= kept_from:
            earlier = plays[hour] - of_day[hour]
            positions[index] = Position(each.subject, each.day * 24 + hour, each.place - earlier, of_day[hour])
    for index, at in play_times.times(kind, positions).items():
        times[index] = at
    return times


def _hours_of_days(kind: int, keys: set[tuple[int, int]]) -> dict[tuple[int, int], list[int]]:
    """Return lists of 24 hourly numbers of plays by (day, id). `keys`: (day, id) pairs."""
    found: dict[tuple[int, int], list[int]] = {}
    wanted = [counts.key(counts.DAY, day, kind, subject) for day, subject in keys]
    for key, packed in counts.fetch_keys(HISTOGRAMS, wanted):
        _, day, _, subject = counts.parts(key)
        found[day, subject] = _hours(packed, day)
    return found


def _hours(packed: bytes, day: int) -> list[int]:
    """Return the 24 hourly numbers of plays of a day from its packed histogram."""
    first = (day * 24 + histograms.FIRST_HOUR) % histograms.HOURS
    return histograms.unpack([packed]).hours[first : first + 24]
