"""Counts of the queries of reading units."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from musicsvc.store.engine.binding import current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from musicsvc.store.engine.store import Store


@contextmanager
def queries(store: Store, told: Callable[[Any], object] | None = None) -> Iterator[list[Any]]:
    """Record the statements of reading units during the block; `told` gets each of them on its thread."""
    database = store.read(current).result()
    asked: list[Any] = []

    def count(statement: Any) -> None:
        # On PostgreSQL the server's own batches write through the same database.
        if threading.current_thread().name.startswith("store-read"):
            asked.append(statement)

    hooks = [count, *([told] if told is not None else [])]
    database.query_hooks.extend(hooks)
    try:
        yield asked
    finally:
        for hook in hooks:
            database.query_hooks.remove(hook)


def questions(asked: Iterable[Any]) -> int:
    """Return the number of statements that belong to the answer itself.

    BEGIN is none, nor is what a batch writes beside the request, after which the token is asked for once more.
    """
    sentences = [event.sql for event in asked if event.sql.lstrip().startswith(("SELECT", "WITH"))]
    return sum("t.digest =" not in sql for sql in sentences)
