"""Run SQL statements, with `?` for each parameter, in the current transaction. Used where Peewee is too slow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from musicsvc.store.engine.binding import current
from musicsvc.store.engine.dialect import is_sqlite, native

ROWS_PER_FETCH = 1000


def run(statement: str, *values: Any) -> None:
    current().execute_sql(native(statement), values)


def run_many(statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement once for each row of parameters."""
    if rows:
        current().cursor().executemany(native(statement), rows)


def fetch(statement: str, *values: Any) -> list[Any]:
    rows: list[Any] = current().execute_sql(native(statement), values).fetchall()
    return rows


def stream_rows(statement: str, *values: Any) -> Iterator[Any]:
    """Yield the rows of a query one by one, without loading all of them into memory."""
    if is_sqlite():
        yield from current().execute_sql(native(statement), values)
        return
    # An unnamed cursor of psycopg would load all rows at once.
    connection: Any = current().connection()
    with connection.cursor(name=f"stream_{uuid4().hex}") as cursor:
        cursor.itersize = ROWS_PER_FETCH
        cursor.execute(native(statement), values)
        yield from cursor


@contextmanager
def without_memory_map() -> Iterator[None]:
    """Disable SQLite's memory-mapped I/O inside the `with` block, so that large reads do not increase memory use."""
    with _pragma("mmap_size", 0):
        yield


@contextmanager
def without_cache() -> Iterator[None]:
    """Disable SQLite's memory map and limit its page cache to 1 MB inside the `with` block, then empty the cache."""
    with without_memory_map(), _pragma("cache_size", -1000):
        yield
    if is_sqlite():
        fetch("PRAGMA shrink_memory")


@contextmanager
def _pragma(name: str, value: int) -> Iterator[None]:
    """Set a SQLite pragma inside the `with` block, and restore it afterwards. Does nothing on PostgreSQL."""
    if not is_sqlite():
        yield
        return
    ((before,),) = fetch(f"PRAGMA {name}")
    fetch(f"PRAGMA {name} = {value}")
    try:
        yield
    finally:
        fetch(f"PRAGMA {name} = {before}")
