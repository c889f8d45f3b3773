"""The 100th, 1,000th, 10,000th (and so on) play of a track, album or artist, and the day with the most plays."""

from __future__ import annotations

from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from musicsvc.clock import DAY, HOUR
from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import histograms, monthly
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from musicsvc.store.plays.subjects import Subject

FIRST, FACTOR = 100, 10
DAYS = "SELECT subject, day, plays FROM play_day WHERE day {days} AND kind = ? AND subject {subjects}"
HISTOGRAM = "SELECT day, subject, histogram FROM play_day WHERE day = ? AND kind = ? AND subject = ?"
# The plays of a subject. CROSS JOIN: SQLite reads the tables in this order, so only the plays of these tracks.
PLAYS = {
    TRACK: "play p WHERE p.track_id = ?",
    ALBUM: "track t CROSS JOIN play p WHERE t.album_id = ? AND p.track_id = t.id",
    ARTIST: "track_artist l CROSS JOIN play p WHERE l.artist_id = ? AND p.track_id = l.track_id",
}
OF_DAY = f"FROM {{plays}} AND p.slot / {SLOTS_PER_DAY} = ?"  # the expression of the index play_of_day
SLOTS = f"SELECT {{index}}, {{slots}} {OF_DAY} AND p.slot >= ? AND p.slot < ?"  # reads the index alone
TIME = f"""
    SELECT {{index}}, found.played_at FROM (
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


class _Place(NamedTuple):
    """The position of a play: its day, the first 30-second slot of its hour, and its index among the hour's plays."""

    number: int  # the index of its milestone in a list
    subject: int
    day: int
    slot: int
    place: int


def build(subject: Subject) -> Milestones:
    """Return the milestones of all time of a track, album or artist.

    If the single plays of a day were deleted, a milestone on that day has the time at which the hour began.
    """
    return build_each(subject.kind, [subject.id])[subject.id]


def build_each(kind: int, ids: Collection[int]) -> dict[int, Milestones]:
    """Return the milestones of tracks, albums or artists by id, in a constant number of queries."""
    watermark = monthly.watermark()
    counts: dict[int, list[BestDay]] = {each: [] for each in ids}
    for subject, day, plays in _by_day(kind, ids, watermark):
        counts[subject].append(BestDay(day, plays))
    reached = [_Reached(each, *found) for each, some in counts.items() for found in _reached(some)]
    found: dict[int, list[Milestone]] = {each: [] for each in ids}
    for each, at in zip(reached, _times(kind, reached, watermark.kept_from), strict=True):
        found[each.subject].append(Milestone(each.number, at))
    return {each: Milestones(found[each], _best(some)) for each, some in counts.items()}


def _best(counts: list[BestDay]) -> BestDay | None:
    return max(counts, key=lambda each: each.plays, default=None)


def _by_day(kind: int, ids: Collection[int], watermark: monthly.Watermark) -> list[Any]:
    """Return (id, day, number of plays) of each track, album or artist and each day with plays, ordered by day."""
    stored = monthly.stored_days(kind, ids, range(watermark.month))
    counted = [
        (subject, month * monthly.DAYS + index, plays)
        for (subject, month), found in stored.items()
        for index, (plays, _) in enumerate(found)
        if plays
    ]
    others = [day for (_, month), found in stored.items() if not found for day in monthly.days_of(month)]
    days, values = dialect.in_list([*others, *monthly.open_days(watermark)])
    among, value = subjects.among(ids)
    rows = fetch(DAYS.format(days=days, subjects=among), values, kind, value)
    rows = [row for row in rows if not stored.get((row[0], row[1] // monthly.DAYS))]
    return sorted([*counted, *rows], key=itemgetter(1))


def _reached(counts: list[BestDay]) -> Iterator[tuple[int, int, int]]:
    """Yield (number of the play, its day, its index among the plays of that day) for each milestone."""
    goal = FIRST
    for (day, plays), total in zip(counts, accumulate(each.plays for each in counts), strict=True):
        while total >= goal:
            yield goal, day, goal - 1 - (total - plays)
            goal *= FACTOR


def _times(kind: int, reached: list[_Reached], kept_from: int) -> list[int]:
    """Return the time of each milestone, or the beginning of its hour if single plays of the day were deleted."""
    hours = _hours_of_days(kind, {(each.day, each.subject) for each in reached})
    times: list[int] = []
    places: list[_Place] = []
    for index, each in enumerate(reached):
        plays = list(accumulate(hours[each.day, each.subject]))
        hour = next((hour for hour, count in enumerate(plays) if each.place < count), 0)
        times.append(each.day * DAY + hour * HOUR)
        if each.day >= kept_from:
            first = each.day * SLOTS_PER_DAY + hour * histograms.SLOTS_PER_HOUR
            earlier = plays[hour - 1] if hour else 0
            places.append(_Place(index, each.subject, each.day, first, each.place - earlier))
    for index, at in _times_of_plays(kind, places) if places else ():
        times[index] = int(at)
    return times


def _times_of_plays(kind: int, places: list[_Place]) -> list[Any]:
    """Return (`number`, time) of the single play at each place. Deleted plays are absent.

    First, the 30-second slots of all plays of the hour are read, from an index alone; then the times in one slot.
    """
    statement = SLOTS.format(index="{index}", slots=dialect.gather("p.slot"), plays=PLAYS[kind])
    parts = [statement.format(index=each.number) for each in places]
    values = [
        value for each in places for value in (each.subject, each.day, each.slot, each.slot + histograms.SLOTS_PER_HOUR)
    ]
    slots = {index: sorted(dialect.gathered(found) or ()) for index, found in fetch(" UNION ALL ".join(parts), *values)}
    parts, values = [], []
    for each in places:
        if each.place < len(of_hour := slots[each.number]):
            slot = of_hour[each.place]
            parts.append(TIME.format(index=each.number, plays=PLAYS[kind]))
            values += [each.subject, each.day, slot, each.place - of_hour.index(slot)]
    return fetch(" UNION ALL ".join(parts), *values) if parts else []


def _hours_of_days(kind: int, keys: set[tuple[int, int]]) -> dict[tuple[int, int], list[int]]:
    """Return lists of 24 hourly numbers of plays by (day, id). `keys`: (day, id) pairs."""
    values = [value for day, subject in keys for value in (day, kind, subject)]
    rows = fetch(" UNION ALL ".join([HISTOGRAM] * len(keys)), *values) if keys else ()
    return {(day, subject): _hours(packed, day) for day, subject, packed in rows}


def _hours(packed: bytes, day: int) -> list[int]:
    """Return the 24 hourly numbers of plays of a day from its packed histogram."""
    first = (day * 24 + histograms.FIRST_HOUR) % histograms.HOURS
    return histograms.unpack([packed]).hours[first : first + 24]
