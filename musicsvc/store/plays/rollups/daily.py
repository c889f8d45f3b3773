"""Rows that say how often and by whom a track, album or artist was played, in a day or a block of days."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.dialect import concat_blob
from musicsvc.store.engine.sql import fetch, run, run_many
from musicsvc.store.plays.rollups import listeners

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LOCK = 0x504C4159  # "PLAY"
COMPACT_EVERY = 64  # plays of a row; so many integers at most stand beside its bitmap
APPEND = """
    INSERT INTO {table} ({key}, plays, listeners) {{rows}}
    ON CONFLICT ({key}) DO UPDATE SET plays = {table}.plays + excluded.plays, listeners = {joined}
    RETURNING {key}, plays
"""
PUT = """
    INSERT INTO {table} ({key}, plays, listeners) {{rows}}
    ON CONFLICT ({key}) DO UPDATE SET plays = excluded.plays, listeners = excluded.listeners
"""
Key = tuple[int, int, int]


class Table(NamedTuple):
    """A table of such rows: its name, and its key of three integers, the type of each as PostgreSQL calls it."""

    name: str
    key: tuple[str, str, str]
    types: tuple[str, ...]


DAYS = Table("play_day", ("day", "kind", "subject"), ("int", "int", "bigint", "bigint", "bytea"))
BLOCKS = Table("play_block", ("kind", "subject", "block"), ("int", "bigint", "int", "bigint", "bytea"))


def lock() -> None:
    """Let one unit at a time keep rows up, from here to its end; on SQLite a writing unit is alone anyway."""
    dialect.lock(LOCK)


def append(table: Table, heard: Mapping[Key, bytes]) -> None:
    """Add to the rows of these keys; each integer of a packed set is a play."""
    joined = concat_blob(f"{table.name}.listeners", "excluded.listeners")
    statement = APPEND.format(table=table.name, key=", ".join(table.key), joined=joined)
    rows = [(*key, len(heard[key]) // listeners.WIDTH, heard[key]) for key in sorted(heard)]
    for a, b, c, plays in dialect.insert_returning(statement, table.types, rows):
        fresh = len(heard[a, b, c]) // listeners.WIDTH
        if plays // COMPACT_EVERY > (plays - fresh) // COMPACT_EVERY:
            _compact(table, (a, b, c))


def _compact(table: Table, key: Key) -> None:
    where = " AND ".join(f"{name} = ?" for name in table.key)
    ((packed,),) = fetch(f"SELECT listeners FROM {table.name} WHERE {where}", *key)  # noqa: S608 - names of our tables
    smaller = listeners.merge([packed])
    run(f"UPDATE {table.name} SET listeners = ? WHERE {where}", smaller, *key)  # noqa: S608 - names of our tables


def put(table: Table, rows: Iterable[tuple[int, int, int, int, bytes]]) -> None:
    """Put these rows in the place of those with the same keys."""
    statement = PUT.format(table=table.name, key=", ".join(table.key))
    dialect.insert_many(statement, table.types, sorted(rows))


def delete(table: Table, keys: Sequence[Key]) -> None:
    """Delete the rows of these keys."""
    where = " AND ".join(f"{name} = ?" for name in table.key)
    run_many(f"DELETE FROM {table.name} WHERE {where}", keys)  # noqa: S608 - constants
