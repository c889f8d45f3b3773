"""The tables of play counts by day, week and month.

A row has the number of plays of a track, album or artist in this time, the set of listener ids, and the histogram.
"""

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from itertools import chain
from struct import Struct
from typing import Any, NamedTuple, TypeAlias, TypeVar

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays import daily
from musicsvc.store.plays.rollups import histograms, listeners

K = TypeVar("K", bound=Hashable)

LOCK = 0x504C4159  # "PLAY"
COMPACT_EVERY = 64  # plays between compactions of a row, hence the most integers after its bitmap
ADD = """
    INSERT INTO {table} ({key}, plays, listeners, histogram) {{rows}}
    ON CONFLICT ({key}) DO UPDATE SET plays = {plays}, listeners = {listeners}, histogram = {histogram}{outdated}
"""
REPLACE = """
    INSERT INTO {table} ({key}, plays, listeners, histogram) {{rows}}
    ON CONFLICT ({key}) DO UPDATE SET plays = excluded.plays, listeners = excluded.listeners,
        histogram = excluded.histogram{outdated}
"""
PACKED_PLAY = Struct("<IBB")  # a new play: its listener's id, its hour of the week, its completion
PLAY = PACKED_PLAY.size
HOUR = 4  # the place of the hour
Key = tuple[int, int, int]
New: TypeAlias = "Mapping[tuple[int, int], Mapping[int, bytes]]"  # by two columns of a key, then by the third
Counts = tuple[int, bytes, bytes]  # plays, packed listeners, packed histogram


class Table(NamedTuple):
    """A table of play counts: its name, the names of its key columns, and the PostgreSQL types of all columns.

    A single key column contains all three numbers of a `Key` (see `daily.key`). `outdated` is SQL, such as
    `, days = NULL`, that is appended to the assignments of each UPDATE.
    """

    name: str
    key: tuple[str, ...]
    types: tuple[str, ...]
    outdated: str = ""

    def stored(self, key: Key) -> tuple[int, ...]:
        """Return the values of the key columns."""
        return key if len(self.key) > 1 else (daily.key(*key),)

    def parts(self, stored: tuple[int, ...]) -> Key:
        """Return the three numbers of the values of the key columns."""
        return (stored[0], stored[1], stored[2]) if len(stored) > 1 else daily.parts(stored[0])


BLOBS = ("listeners", "histogram")
VALUES = ("bigint", "bytea", "bytea")
DAILY = Table("play_day", ("key",), ("bigint", *VALUES))
WEEKLY = Table("play_stretch", ("kind", "subject", "stretch"), ("int", "bigint", "int", *VALUES))
MONTHLY = Table("play_block", ("kind", "subject", "block"), ("int", "bigint", "int", *VALUES), ", days = NULL")


def lock() -> None:
    """Prevent other transactions from changing the play counts until this transaction ends."""
    dialect.lock(LOCK)


def pack(slot: int, listener: int, duration_ms: int | None, length: int) -> bytes:
    """Return a new play as bytes. `slot`: half minutes since 1970. `length`: the track's length in ms, 0 if unknown."""
    hour = (slot // histograms.SLOTS_PER_HOUR + histograms.FIRST_HOUR) % histograms.HOURS
    return PACKED_PLAY.pack(listener, hour, histograms.completion(duration_ms, length))


def split(new: bytes) -> tuple[int, bytes, bytes]:
    """Convert packed new plays into (number of plays, packed listener ids, packed histogram)."""
    if len(new) == PLAY:  # most often
        return 1, new[:4], new[4:]
    if len(new) == 2 * PLAY:
        return 2, new[:4] + new[6:10], new[4:6] + new[10:]
    pairs = array("H", new)  # two bytes each: two of a listener, then one of a histogram
    people = array("H", bytes(len(new) // PLAY * listeners.WIDTH))
    people[::2], people[1::2] = pairs[::3], pairs[1::3]
    return len(new) // PLAY, people.tobytes(), pairs[2::3].tobytes()


def add(table: Table, new: New) -> dict[Key, int]:
    """Add packed new plays to the rows of a table. Return the total plays of each row with many plays, by row key."""
    joined = {name: dialect.concat_blob(f"{table.name}.{name}", f"excluded.{name}") for name in BLOBS}
    noted = [f"{table.name}.{name}" for name in table.key]
    total = dialect.sum_noting(f"{table.name}.plays", "excluded.plays", COMPACT_EVERY, noted)
    statement = ADD.format(table=table.name, key=", ".join(table.key), plays=total, outdated=table.outdated, **joined)
    rows: list[tuple[Any, ...]] = []
    for a, b in sorted(new):
        some = new[a, b]
        if table is DAILY:
            day = daily.key(a, b, 0)
            rows += [
                (day + c, 1, packed[:4], packed[4:]) if len(packed := some[c]) == PLAY else (day + c, *split(packed))
                for c in sorted(some)  # most often a single play, for which a call of `split` would take a third longer
            ]
        else:
            rows += [(a, b, c, *split(some[c])) for c in sorted(some)]
    width = len(table.key)
    stored = dialect.insert_noting(statement, table.types, rows, (*table.key, "plays"))
    # The total of a row that was not stored before is its number of new plays.
    totals = chain((row[: width + 1] for row in rows if row[width] >= COMPACT_EVERY), stored)
    large = {table.parts(row[:width]): row[width] for row in totals if row[width] >= COMPACT_EVERY}
    for (a, b, c), plays in large.items():
        if plays % COMPACT_EVERY < len(new[a, b][c]) // PLAY:
            _compact(table, table.stored((a, b, c)))
    return large


def _compact(table: Table, key: tuple[int, ...]) -> None:
    where = _where(table)
    ((people, plays),) = fetch(f"SELECT listeners, histogram FROM {table.name} WHERE {where}", *key)  # noqa: S608 - our own names
    smaller = listeners.merge([people]), histograms.merge([plays])
    run(f"UPDATE {table.name} SET listeners = ?, histogram = ? WHERE {where}", *smaller, *key)  # noqa: S608 - the same


def replace(table: Table, rows: Iterable[tuple[int, int, int, int, bytes, bytes]]) -> None:
    statement = REPLACE.format(table=table.name, key=", ".join(table.key), outdated=table.outdated)
    stored = sorted((*table.stored((a, b, c)), *counts) for a, b, c, *counts in rows)
    dialect.insert_many(statement, table.types, stored)


def delete(table: Table, keys: Iterable[Key]) -> None:
    run_many(f"DELETE FROM {table.name} WHERE {_where(table)}", [table.stored(key) for key in keys])  # noqa: S608 - our own names


def _where(table: Table) -> str:
    return " AND ".join(f"{name} = ?" for name in table.key)


def add_up(rows: Iterable[tuple[K, int, bytes, bytes]]) -> dict[K, Counts]:
    """Add up rows of (key, number of plays, packed listener ids, packed histogram). Return the totals by key."""
    plays: dict[K, int] = defaultdict(int)
    sets: dict[K, list[bytes]] = defaultdict(list)
    some: dict[K, list[bytes]] = defaultdict(list)
    for key, count, packed, histogram in rows:
        plays[key] += count
        sets[key].append(packed)
        some[key].append(histogram)
    return {key: (plays[key], listeners.merge(sets[key]), histograms.merge(some[key])) for key in plays}
