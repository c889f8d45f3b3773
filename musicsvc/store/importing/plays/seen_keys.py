"""A set of keys that have occurred in an imported file. A large set is stored on disk."""

import hashlib
import sqlite3
from collections.abc import Sequence
from typing import Self

ADD = "INSERT OR IGNORE INTO seen VALUES (?)"
HAS = "SELECT 1 FROM seen WHERE key = ?"
MAX_IN_MEMORY = 100_000


class SeenKeys:
    """A set of keys. More than MAX_IN_MEMORY keys are stored in a temporary SQLite database."""

    def __init__(self) -> None:
        self._in_memory: set[bytes] = set()
        self._database: sqlite3.Connection | None = None

    def has(self, parts: Sequence[object]) -> bool:
        key = _digest(parts)
        if self._database is None:
            return key in self._in_memory
        return self._database.execute(HAS, (key,)).fetchone() is not None

    def add(self, parts: Sequence[object]) -> None:
        if self._database is not None:
            self._database.execute(ADD, (_digest(parts),))
            return
        self._in_memory.add(_digest(parts))
        if len(self._in_memory) > MAX_IN_MEMORY:
            self._move_to_database()

    def _move_to_database(self) -> None:
        # Transactions use it from different threads of the store, but never at the same time.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO seen VALUES (?)", ((key,) for key in sorted(self._in_memory)))
        self._in_memory.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._database is not None:
            self._database.close()


def _digest(parts: Sequence[object]) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()
