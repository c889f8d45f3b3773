"""Counts of the database queries of reading units."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store

OF_JOBS = (
    "t.digest =",
    '"import_task"',
    '"listen_progress"',
    'max("t1"."id") FROM "pending_listen"',
    '"counted_for" FROM "pending_listen"',
    "catalog_change\n",
)


@contextmanager
def queries(store: Store, on_statement: Callable[[Any], object] | None = None) -> Iterator[list[Any]]:
    """Record the statements of reading units while the block runs; `on_statement` is called with each on its thread."""
    database = store.read(current).result()
    statements: list[Any] = []

    def keep(statement: Any) -> None:
        # On PostgreSQL the server's batches write through the same database object.
        if threading.current_thread().name.startswith("store-read"):
            statements.append(statement)

    hooks = [keep, *([on_statement] if on_statement is not None else [])]
    database.query_hooks.extend(hooks)
    try:
        yield statements
    finally:
        for hook in hooks:
            database.query_hooks.remove(hook)


def count_reads(statements: Iterable[Any]) -> int:
    """Count the statements that read data for the answer.

    BEGIN does not count, nor do the query for the token that follows a batch of writes, the one for imports to do, and
    those for pending listens to count.
    """
    reads = [event.sql for event in statements if event.sql.lstrip().startswith(("SELECT", "WITH"))]
    return sum(not any(part in sql for part in OF_JOBS) for sql in reads)


@contextmanager
def statements() -> Iterator[list[Any]]:
    """Record the statements of the `with` block, within a unit. Those that run once for each row are not recorded."""
    found: list[Any] = []
    current().query_hooks.append(found.append)
    try:
        yield found
    finally:
        current().query_hooks.remove(found.append)


def instructions(unit: Callable[[], object]) -> int:
    """Call a unit on SQLite, and return how many times SQLite ran ten instructions for it."""
    ticks = count()
    connection: Any = current().connection()
    connection.set_progress_handler(lambda: next(ticks) < 0, 10)
    try:
        unit()
    finally:
        connection.set_progress_handler(None)
    return next(ticks)
