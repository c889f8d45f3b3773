"""Which keys a file has had already, on disk however many they are."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

ADD = "INSERT OR IGNORE INTO seen VALUES (?)"
HAS = "SELECT 1 FROM seen WHERE key = ?"
FEW = 100_000


class Seen:
    """A set of texts that only grows: the first in memory, all of them in a temporary database once they are many."""

    def __init__(self) -> None:
        self._few: set[bytes] = set()
        self._many: sqlite3.Connection | None = None

    def has(self, parts: Sequence[object]) -> bool:
        """Whether these parts were taken up as a key."""
        key = _digest(parts)
        return key in self._few if self._many is None else self._many.execute(HAS, (key,)).fetchone() is not None

    def add(self, parts: Sequence[object]) -> None:
        """Take these parts up as one key."""
        if self._many is not None:
            self._many.execute(ADD, (_digest(parts),))
            return
        self._few.add(_digest(parts))
        if len(self._few) > FEW:
            self._move()

    def _move(self) -> None:
        # The units that ask are run on the store's threads, one after the other.
        self._many = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._many.execute("PRAGMA journal_mode = OFF")
        self._many.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")
        self._many.execute("BEGIN")
        self._many.executemany("INSERT INTO seen VALUES (?)", ((key,) for key in sorted(self._few)))
        self._few.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._many is not None:
            self._many.close()


def _digest(parts: Sequence[object]) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()
