"""How often reading units ask the database."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from musicsvc.store.database import current

if TYPE_CHECKING:
    from collections.abc import Iterator

    from musicsvc.store.database import Store


@contextmanager
def queries(store: Store) -> Iterator[list[Any]]:
    """What reading units ask while the block runs, an entry a statement."""
    database = store.read(current).result()
    asked: list[Any] = []
    database.query_hooks.append(asked.append)
    try:
        yield asked
    finally:
        database.query_hooks.remove(asked.append)
