"""Delete selected plays, such as those of an import, and correct all counts, some thousands of plays at a time."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays import daily, ranks, subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.reported import own_counts
from musicsvc.store.plays.rollups import day_parts, histograms, listeners, monthly, tables, weekly
from musicsvc.store.plays.rollups.tables import Key, Table
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

TAKEN_AT_ONCE = 20_000  # plays, about 150 ms
NO_LIMIT = 1 << 62
READ_AT_ONCE = 200_000  # plays of all sources on the days that are counted again
PLAYS = "SELECT slot, track_id FROM play WHERE slot >= ? AND slot < ? AND {chosen} ORDER BY slot LIMIT ?"
DELETE = "DELETE FROM play WHERE slot >= ? AND slot < ? AND {chosen}"
LEFT = "SELECT track_id, slot, listener_id, duration_ms FROM play WHERE slot >= ? AND slot < ?"
MEMBERS = {
    ALBUM: "SELECT album_id, id FROM track WHERE album_id {among}",
    ARTIST: "SELECT artist_id, track_id FROM track_artist WHERE artist_id {among}",
}
DAYS = f"SELECT {daily.SUBJECT}, {daily.DAY}, plays, listeners, histogram FROM {{rows}}"  # noqa: S608 - our own names
WEEKS = "SELECT kind, subject, stretch FROM play_stretch WHERE kind = ? AND subject {among} AND stretch {weeks}"
TOTALS = "UPDATE track_plays SET plays = plays - ? WHERE track_id = ?"
NO_TOTALS = "DELETE FROM track_plays WHERE plays = 0 AND track_id {among}"


class Selection(NamedTuple):
    """An SQL condition on rows of the table of plays, and its values.

    It is applied to the plays of a day. An index of its columns would be read as a whole for each day.
    """

    condition: str
    values: tuple[int, ...]


class Withdrawn(NamedTuple):
    """The number of deleted plays, and the days on which selected plays may remain."""

    plays: int
    days: Sequence[int]


def withdraw(chosen: Selection, days: Sequence[int]) -> Withdrawn:
    """Delete some of the selected plays on the first of these `days` (since 1970-01-01), and correct all counts."""
    tables.lock()
    taken: dict[int, Counter[int]] = defaultdict(Counter)  # plays of tracks by day, which may take several parts
    read = finished = 0
    for day in days:
        if sum(each.total() for each in taken.values()) >= TAKEN_AT_ONCE or read >= READ_AT_ONCE:
            break
        complete, tracks = _delete(chosen, day)
        finished += complete
        if tracks:
            taken[day] += tracks
            read += _recount_tracks(day, tracks)
            own_counts.recount(day, tracks)
        if not complete:
            break
    if taken:
        _recount(taken)
    return Withdrawn(sum(each.total() for each in taken.values()), days[finished:])


def _delete(chosen: Selection, day: int) -> tuple[bool, Counter[int]]:
    """Delete the selected plays of a day, or the earliest if there are many.

    Return whether all are deleted, and the numbers of deleted plays by track.
    """
    first, end = day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY
    plays, values = PLAYS.format(chosen=chosen.condition), chosen.values
    rows = fetch(plays, first, end, *values, TAKEN_AT_ONCE + 1)
    if many := len(rows) > TAKEN_AT_ONCE:
        end = max(rows[-1][0], rows[0][0] + 1)
        rows = fetch(plays, first, end, *values, NO_LIMIT)
    run(DELETE.format(chosen=chosen.condition), first, end, *values)
    return not many, Counter(track for _, track in rows)


def _recount_tracks(day: int, taken: Collection[int]) -> int:
    """Recount a day's plays of the tracks in `taken`. Return the number of plays that were read."""
    lengths = subjects.of_tracks(taken).lengths
    people: dict[int, bytes] = defaultdict(bytes)
    packed: dict[int, bytes] = defaultdict(bytes)
    rows = fetch(LEFT, day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY)
    for track, slot, listener, duration_ms in rows:
        if track in taken:
            people[track] += listeners.pack([listener])
            packed[track] += histograms.pack(slot, duration_ms, lengths.get(track, 0))
    counts = {
        track: (len(some) // listeners.WIDTH, listeners.merge([some]), histograms.merge([packed[track]]))
        for track, some in people.items()
    }
    _store(tables.DAILY, {(day, TRACK, track): counts.get(track) for track in taken})
    return len(rows)


def _recount(taken: Mapping[int, Counter[int]]) -> None:
    """Correct all counts except the daily counts of tracks. `taken`: numbers of deleted plays by day and track."""
    totals = sum(taken.values(), Counter[int]())
    by_track = subjects.of_tracks(totals).subjects()
    days: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))  # by kind and subject
    for day, tracks in taken.items():
        for track in tracks:
            for kind, subject in by_track.get(track, [Subject(TRACK, track)]):
                days[kind][subject].add(day)
    for kind in MEMBERS:
        _recount_days(kind, days[kind])
    day_parts.rebuild(days)
    for kind, of_kind in days.items():
        _recount_months(kind, of_kind)
        _recount_weeks(kind, of_kind)
    with ranks.moving(totals):
        run_many(TOTALS, [(plays, track) for track, plays in sorted(totals.items())])
        among, ids = dialect.in_list(totals)
        run(NO_TOTALS.format(among=among), ids)


def _recount_days(kind: int, days: Mapping[int, set[int]]) -> None:
    """Recompute daily counts of albums or artists from those of their tracks. `days`: the days to recompute, by id."""
    among, ids = dialect.in_list(days)
    members: dict[int, list[int]] = defaultdict(list)
    for subject, track in fetch(MEMBERS[kind].format(among=among), ids):
        members[track].append(subject)
    found = daily.fetch_rows(DAYS, set[int]().union(*days.values()), TRACK, members)
    keyed = (
        ((day, subject), plays, people, packed)
        for track, day, plays, people, packed in found
        for subject in members[track]
    )
    counts = tables.add_up(keyed)
    wanted = [(day, subject) for subject, some in days.items() for day in some]
    _store(tables.DAILY, {(day, kind, subject): counts.get((day, subject)) for day, subject in wanted})


def _recount_months(kind: int, days: Mapping[int, set[int]]) -> None:
    watermark = monthly.watermark()
    months = {(subject, day // monthly.DAYS) for subject, some in days.items() for day in some}
    stored = [(subject, month) for subject, month in months if watermark.rolled_up(month, kind, subject)]
    counts = _from_days(kind, stored, monthly.DAYS)
    _store(tables.MONTHLY, {(kind, *each): counts.get(each) for each in stored})


def _recount_weeks(kind: int, days: Mapping[int, set[int]]) -> None:
    """Recompute the weekly counts that exist from daily counts. `days`: the changed days by id."""
    touched = {(subject, day // weekly.DAYS) for subject, some in days.items() for day in some}
    among, ids = dialect.in_list(days)
    weeks, numbers = dialect.in_list({week for _, week in touched})
    rows = fetch(WEEKS.format(among=among, weeks=weeks), kind, ids, numbers)
    stored = [(subject, week) for _, subject, week in rows if (subject, week) in touched]
    counts = _from_days(kind, stored, weekly.DAYS)
    _store(tables.WEEKLY, {(kind, *each): counts.get(each) for each in stored})


def _from_days(kind: int, keys: Collection[tuple[int, int]], length: int) -> dict[tuple[int, int], tables.Counts]:
    """Return the sums of the daily counts for months of 32 days (`length` 32) or weeks of 8 days (`length` 8).

    `keys`: pairs of a track, album or artist id and the number of a month or week.
    """
    wanted = set(keys)
    if not wanted:
        return {}
    numbers = {number * length + at for _, number in wanted for at in range(length)}
    rows = daily.fetch_rows(DAYS, numbers, kind, {subject for subject, _ in wanted})
    keyed = (((subject, day // length), plays, people, packed) for subject, day, plays, people, packed in rows)
    return tables.add_up(row for row in keyed if row[0] in wanted)


def _store(table: Table, counts: Mapping[Key, tables.Counts | None]) -> None:
    """Write `counts`, given by row key, to the table. Rows whose counts are None are deleted."""
    tables.delete(table, [key for key, each in counts.items() if each is None])
    rows: Iterable[tuple[int, int, int, int, bytes, bytes]] = [(*key, *each) for key, each in counts.items() if each]
    tables.replace(table, rows)
