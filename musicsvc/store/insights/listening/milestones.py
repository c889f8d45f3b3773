"""The 100th, 1,000th, 10,000th (and so on) play of a track, album or artist, and the day with the most plays."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from itertools import accumulate
from math import isqrt
from operator import itemgetter
from typing import Any, NamedTuple

from musicsvc.clock import DAY, HOUR
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import blocks, counts, histograms, reader
from musicsvc.store.plays.rollups.histograms import SLOTS_PER_HOUR
from musicsvc.store.plays.subjects import Subject

FIRST, FACTOR = 100, 10
DAYS = f"SELECT {counts.SUBJECT}, {counts.OF_DAY}, plays FROM {{rows}} ORDER BY key"  # noqa: S608 - our own names
HISTOGRAMS = "SELECT key, histogram FROM {rows}"
OF_DAY = f"FROM {{plays}} AND p.slot / {SLOTS_PER_DAY} = ?"  # the expression of the index play_of_day
SLOTS = f"SELECT {{key}}, {{slots}} {OF_DAY} AND p.slot >= ? AND p.slot < ?"  # reads the index alone
TIME = f"""
    SELECT {{key}}, found.played_at FROM (
        SELECT p.played_at {OF_DAY} AND p.slot = ? ORDER BY p.played_at LIMIT 1 OFFSET ?
    ) AS found
"""  # noqa: S608 - constants


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


class Position(NamedTuple):
    """The position of a play: its hour (counted from 1970), and its place among the plays of that hour, from 0.

    `plays` is the number of plays that the track, album or artist (id `subject`) has in that hour.
    """

    subject: int
    hour: int
    place: int
    plays: int


class Slots(NamedTuple):
    """The 30-second slots `first` to `end` - 1, and the place of a play among their plays.

    The place is counted from 0, or backwards from -1, the last play.
    """

    subject: int
    first: int
    end: int
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
    """Return the time of each milestone, or the beginning of its hour if single plays of the day were deleted.

    Wrong counts may have more plays of a day than its hours: such a milestone has the time of the last hour.
    """
    hours = _hours_of_days(kind, {(each.day, each.subject) for each in reached})
    times: list[int] = []
    positions: dict[int, Position] = {}
    for index, each in enumerate(reached):
        of_day = hours[each.day, each.subject]
        plays = list(accumulate(of_day))
        hour = min(bisect_right(plays, each.place), len(plays) - 1)
        times.append(each.day * DAY + hour * HOUR)
        place = each.place - plays[hour] + of_day[hour]
        if each.day >= kept_from and 0 <= place < of_day[hour]:
            positions[index] = Position(each.subject, each.day * 24 + hour, place, of_day[hour])
    for index, at in times_of(kind, positions).items():
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


def times_of(kind: int, positions: Mapping[int, Position]) -> dict[int, int]:
    """Return the time of each play by its key in `positions`. Deleted plays are absent.

    First, an index is read to find the slot of each play, then the times in this slot.
    """
    slots = _find_slots(kind, {key: likely_slots(position) for key, position in positions.items()})
    slots |= _find_slots(kind, {key: _hour(position) for key, position in positions.items() if key not in slots})
    last = {key: (each.subject, each.first, each.place) for key, each in slots.items()}
    return {key: int(at) for key, at in _fetch_each(TIME, kind, last)}


def _hour(position: Position) -> Slots:
    first = position.hour * SLOTS_PER_HOUR
    return Slots(position.subject, first, first + SLOTS_PER_HOUR, position.place)


def likely_slots(position: Position) -> Slots:
    """Return slots from the beginning or to the end of the hour, whichever is nearer, that likely contain the play.

    If the plays of the hour are unevenly spread, the play may be in another slot.
    """
    hour = _hour(position)
    to_end = position.plays - position.place
    nearest = min(position.place + 1, to_end)
    slots = SLOTS_PER_HOUR * (nearest + 2 * isqrt(nearest) + 3) // position.plays
    if slots >= SLOTS_PER_HOUR:
        return hour
    if nearest < to_end:
        return hour._replace(end=hour.first + slots)
    return hour._replace(first=hour.end - slots, place=-to_end)


def _find_slots(kind: int, among: Mapping[int, Slots]) -> dict[int, Slots]:
    """Return for each play the one slot that contains it. A play that is not in its slots of `among` is absent."""
    statement = SLOTS.replace("{slots}", sql.gather("p.slot"))
    found: dict[int, Slots] = {}
    for key, gathered in _fetch_each(statement, kind, {key: each[:3] for key, each in among.items()}):
        subject, _, _, place = among[key]
        slots = sorted(sql.gathered(gathered) or ())
        if -len(slots) <= place < len(slots):
            slot = slots[place]
            found[key] = Slots(subject, slot, slot + 1, place % len(slots) - slots.index(slot))
    return found


def _fetch_each(statement: str, kind: int, asked: Mapping[int, tuple[int, int, int]]) -> list[Any]:
    """Return one row for each key of `asked`, whose values are (subject, first slot, the statement's last value)."""
    if not asked:
        return []
    plays = subjects.plays(kind, {subject for subject, *_ in asked.values()})[1].format(among="= ?")
    parts = [statement.format(key=key, plays=plays) for key in asked]
    values = [value for subject, slot, last in asked.values() for value in (subject, slot // SLOTS_PER_DAY, slot, last)]
    return fetch(" UNION ALL ".join(parts), *values)
