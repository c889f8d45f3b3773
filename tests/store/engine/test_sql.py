"""Statements that run beside Peewee."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from musicsvc.store.engine import sql

if TYPE_CHECKING:
    from musicsvc.store.engine.store import Store


def _pragmas() -> list[int]:
    """Return the size of the memory map and of the page cache."""
    return [int(sql.fetch(f"PRAGMA {name}")[0][0]) for name in ("mmap_size", "cache_size")]


@pytest.mark.only_on("sqlite")
def test_reads_without_caches_leave_the_connection_as_it_was(store: Store) -> None:
    def unit() -> list[list[int]]:
        found = [_pragmas()]
        with sql.without_memory_map():
            found.append(_pragmas())
        found.append(_pragmas())
        with sql.without_cache():
            found.append(_pragmas())
        return [*found, _pragmas()]

    (size, pages), *found = store.read(unit).result()
    assert size > 0
    assert found == [[0, pages], [size, pages], [0, -1000], [size, pages]]
