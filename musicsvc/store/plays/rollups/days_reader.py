"""What was heard of tracks, albums and artists over any days: from blocks where whole ones are made, else from days.

`first` and `end` are days counted from 1970-01-01, the end not included.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.rollups import listeners, monthly, weekly
from musicsvc.store.plays.rollups.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pyroaring import BitMap

FROM_DAYS = "SELECT {columns} FROM play_day WHERE day {days} AND kind = ? AND subject {subjects}"
FROM_BLOCKS = """
    SELECT {columns} FROM play_block WHERE kind = ? AND subject {subjects} AND block >= ? AND block < ?
"""
HOT = """
    SELECT subject FROM play_stretch WHERE kind = ? AND subject {subjects} AND stretch {stretches}
    GROUP BY subject HAVING COUNT(*) = ?
"""
FROM_STRETCHES = """
    SELECT {columns} FROM play_stretch WHERE kind = ? AND subject {subjects} AND stretch {stretches}
"""
# Of a track's own count; an album's and an artist's are those of their tracks.
EVER = {
    TRACK: "SELECT track_id, plays FROM track_plays WHERE track_id {among}",
    ALBUM: """
        SELECT t.album_id, sum(p.plays) FROM track t JOIN track_plays p ON p.track_id = t.id
        WHERE t.album_id {among} GROUP BY t.album_id
    """,
    ARTIST: """
        SELECT t.artist_id, sum(p.plays) FROM track_artist t JOIN track_plays p ON p.track_id = t.track_id
        WHERE t.artist_id {among} GROUP BY t.artist_id
    """,
}
ALL_TIME = 1 << 40  # a day that never comes
SPAN = "SELECT coalesce(min(day), 0), coalesce(max(day) + 1, 0) FROM play_day WHERE day >= ?"


class Heard(NamedTuple):
    """How often something was played, and by whom."""

    plays: int
    listeners: BitMap


def over(kind: int, subject: int, first: int, end: int) -> Heard:
    """The plays and the listeners of a subject in these days."""
    rows = list(_rows("plays, listeners", kind, [subject], first, end))
    return Heard(sum(row[0] for row in rows), listeners.union(row[1] for row in rows))


def all_time(kind: int, subject: int) -> Heard:
    """The plays and the listeners of a subject of all time."""
    return over(kind, subject, 0, ALL_TIME)


def days(kind: int, subject: int, first: int, end: int) -> list[tuple[int, int, bytes]]:
    """(day, plays, packed listeners) of the days that have any, in their order."""
    return sorted(_from_days("day, plays, listeners", kind, [subject], _days(first, end)))


def plays_of(kind: int, subjects: Collection[int], first: int, end: int) -> dict[int, int]:
    """The plays of each of the subjects that has any in these days."""
    found: dict[int, int] = defaultdict(int)
    for subject, plays in _rows("subject, sum(plays)", kind, subjects, first, end, "GROUP BY subject"):
        found[subject] += int(plays)
    return dict(found)


def listeners_of(kind: int, subjects: Collection[int], first: int, end: int) -> dict[int, int]:
    """How many listeners each of the subjects has in these days, where it has any."""
    sets: dict[int, list[bytes]] = defaultdict(list)
    for subject, packed in _rows("subject, listeners", kind, subjects, first, end):
        sets[subject].append(packed)
    return {subject: len(listeners.union(some)) for subject, some in sets.items()}


def plays_ever(kind: int, subjects: Collection[int]) -> dict[int, int]:
    """The plays of all time of each of the subjects that has any."""
    condition, ids = dialect.in_list(subjects)
    rows = fetch(EVER[kind].format(among=condition), ids)
    return {subject: int(plays) for subject, plays in rows}


def _rows(columns: str, kind: int, subjects: Collection[int], first: int, end: int, grouped: str = "") -> Iterator[Any]:
    """The rows that cover these days, no day twice; where grouped, those of blocks and those of days apart."""
    made = monthly.mark().block
    low, high = -(-first // monthly.DAYS), min(end // monthly.DAYS, made)
    if low >= high:
        yield from _from_edges(columns, kind, subjects, _days(first, end), grouped)
        return
    condition, ids = dialect.in_list(subjects)
    query = FROM_BLOCKS.format(columns=columns, subjects=condition) + grouped
    yield from fetch(query, kind, ids, low, high)
    edges = [*range(first, low * monthly.DAYS), *_days(high * monthly.DAYS, end)]
    yield from _from_edges(columns, kind, subjects, edges, grouped)


def _days(first: int, end: int) -> range:
    """The days, without those before the first and after the last play of all."""
    if end == ALL_TIME:
        oldest, newest = fetch(SPAN, first)[0]
        return range(max(first, oldest), newest)
    return range(first, end)


def _from_edges(
    columns: str, kind: int, subjects: Collection[int], days: Collection[int], grouped: str
) -> Iterator[Any]:
    """The rows that cover these days: for subjects that have every stretch that lies in them these, else the days."""
    whole = weekly.within({*days})
    hot = _with_stretches(kind, subjects, whole) if whole else set()
    if hot:
        among, ids = dialect.in_list(hot)
        of_stretches, values = dialect.in_list(whole)
        query = FROM_STRETCHES.format(columns=columns, subjects=among, stretches=of_stretches)
        yield from fetch(f"{query} {grouped}", kind, ids, values)
        covered = {day for each in whole for day in weekly.days_of(each)}
        yield from _from_days(columns, kind, hot, [day for day in days if day not in covered], grouped)
    yield from _from_days(columns, kind, [each for each in subjects if each not in hot], days, grouped)


def _with_stretches(kind: int, subjects: Collection[int], whole: Collection[int]) -> set[int]:
    """Those of the subjects that have all these stretches."""
    among, ids = dialect.in_list(subjects)
    of_stretches, values = dialect.in_list(whole)
    query = HOT.format(subjects=among, stretches=of_stretches)
    return {row[0] for row in fetch(query, kind, ids, values, len(whole))}


def _from_days(
    columns: str, kind: int, subjects: Collection[int], days: Collection[int], grouped: str = ""
) -> list[Any]:
    if not days or not subjects:
        return []
    condition, ids = dialect.in_list(subjects)
    of_days, values = dialect.in_list(days)
    query = f"{FROM_DAYS.format(columns=columns, days=of_days, subjects=condition)} {grouped}"
    return list(fetch(query, values, kind, ids))
