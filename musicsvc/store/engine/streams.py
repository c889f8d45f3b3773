"""Rows of any number, one after the other, in memory that does not grow with them; within one unit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from musicsvc.store.engine.binding import current, is_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROWS_A_FETCH = 1000


@contextmanager
def unmapped() -> Iterator[None]:
    """Reads within the block go past SQLite's memory map, which would grow to the size of what is read."""
    with _pragma("mmap_size", 0):
        yield


@contextmanager
def uncached() -> Iterator[None]:
    """Read within the block past the memory map and, but for a megabyte, past SQLite's page cache."""
    with unmapped(), _pragma("cache_size", -1000):
        yield
    if is_sqlite():
        current().execute_sql("PRAGMA shrink_memory").fetchall()


@contextmanager
def _pragma(name: str, value: int) -> Iterator[None]:
    """Set the pragma for the block; does nothing on PostgreSQL."""
    if not is_sqlite():
        yield
        return
    ((before,),) = current().execute_sql(f"PRAGMA {name}").fetchall()
    current().execute_sql(f"PRAGMA {name} = {value}").fetchall()
    try:
        yield
    finally:
        current().execute_sql(f"PRAGMA {name} = {before}").fetchall()


def rows(statement: str, values: Sequence[Any]) -> Iterator[Any]:
    """The rows of a statement in the words of the store that is open."""
    if is_sqlite():
        yield from current().execute_sql(statement, values)
        return
    # A cursor without a name would take all rows at once.
    connection: Any = current().connection()
    with connection.cursor(name=f"stream_{uuid4().hex}") as cursor:
        cursor.itersize = ROWS_A_FETCH
        cursor.execute(statement, values)
        yield from cursor
