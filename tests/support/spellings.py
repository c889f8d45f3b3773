"""The spellings by which imports find names."""

from typing import Any

from musicsvc.store.engine import name_index
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store


def require_spellings(store: Store) -> None:
    """Check that the spellings are those of the names that are stored."""

    def read() -> tuple[set[Any], set[Any]]:
        rows = {
            (name_key(name)[: name_index.KEY], source, row_id, name)
            for source in (*name_index.INDEXES, name_index.MERGED)
            for row_id, name in fetch(f"SELECT id, name FROM {source}")
            if name_key(name) != name
        }
        return set(map(tuple, fetch("SELECT key, source, id, name FROM name_spelling"))), rows

    found, expected = store.read(read).result()
    assert found == expected
