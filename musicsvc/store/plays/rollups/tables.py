"""The tables of play counts. A row has the plays and listeners of a track, album or artist in a day, week or month."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays.rollups import listeners

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    K = TypeVar("K", bound=Hashable)

LOCK = 0x504C4159  # "PLAY"
COMPACT_EVERY = 64  # plays between compactions of a row, hence the most integers after its bitmap
ADD = """
    INSERT INTO {table} ({key}, plays, listeners) {{rows}}
    ON CONFLICT ({key}) DO UPDATE SET plays = {table}.plays + excluded.plays, listeners = {joined}
    RETURNING {key}, plays
"""
REPLACE = """
    INSERT INTO {table} ({key}, plays, listeners) {{rows}}
    ON CONFLICT ({key}) DO UPDATE SET plays = excluded.plays, listeners = excluded.listeners
"""
Key = tuple[int, int, int]
Counts = tuple[int, bytes]  # plays, packed listeners


class Table(NamedTuple):
    """A table of play counts: its name, the names of its key columns, and the PostgreSQL types of all columns."""

    name: str
    key: tuple[str, str, str]
    types: tuple[str, ...]


DAILY = Table("play_day", ("day", "kind", "subject"), ("int", "int", "bigint", "bigint", "bytea"))
WEEKLY = Table("play_stretch", ("kind", "subject", "stretch"), ("int", "bigint", "int", "bigint", "bytea"))
MONTHLY = Table("play_block", ("kind", "subject", "block"), ("int", "bigint", "int", "bigint", "bytea"))


def lock() -> None:
    """Lock all tables of play counts against changes by other transactions, until this transaction ends."""
    dialect.lock(LOCK)


def add(table: Table, new: Mapping[Key, bytes]) -> None:
    """Add new plays to the rows of a table. `new` maps row keys to packed listener ids, with one id for each play."""
    joined = dialect.concat_blob(f"{table.name}.listeners", "excluded.listeners")
    statement = ADD.format(table=table.name, key=", ".join(table.key), joined=joined)
    rows = [(*key, len(new[key]) // listeners.WIDTH, new[key]) for key in sorted(new)]
    for a, b, c, plays in dialect.insert_returning(statement, table.types, rows):
        fresh = len(new[a, b, c]) // listeners.WIDTH
        if plays // COMPACT_EVERY > (plays - fresh) // COMPACT_EVERY:
            _compact(table, (a, b, c))


def _compact(table: Table, key: Key) -> None:
    where = _where(table)
    ((packed,),) = fetch(f"SELECT listeners FROM {table.name} WHERE {where}", *key)  # noqa: S608 - our own names
    smaller = listeners.merge([packed])
    run(f"UPDATE {table.name} SET listeners = ? WHERE {where}", smaller, *key)  # noqa: S608 - our own names


def replace(table: Table, rows: Iterable[tuple[int, int, int, int, bytes]]) -> None:
    statement = REPLACE.format(table=table.name, key=", ".join(table.key))
    dialect.insert_many(statement, table.types, sorted(rows))


def delete(table: Table, keys: Sequence[Key]) -> None:
    run_many(f"DELETE FROM {table.name} WHERE {_where(table)}", keys)  # noqa: S608 - our own names


def _where(table: Table) -> str:
    return " AND ".join(f"{name} = ?" for name in table.key)


def add_up(rows: Iterable[tuple[K, int, bytes]]) -> dict[K, Counts]:
    """Add up rows of (key, plays, packed listener ids). Return (sum of plays, union of listeners) by key."""
    plays: dict[K, int] = defaultdict(int)
    sets: dict[K, list[bytes]] = defaultdict(list)
    for key, count, packed in rows:
        plays[key] += count
        sets[key].append(packed)
    return {key: (plays[key], listeners.merge(some)) for key, some in sets.items()}
