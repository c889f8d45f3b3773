"""The version of the database, for caches of what was read from it."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from musicsvc.store.engine.store import Store

COUNTERS_SECONDS = 4.0  # responses may show counters that are up to 5 seconds old


class DatabaseVersion:
    """Reads the version at most once per turn of the event loop.

    All requests of a turn arrived before it began, so each sees every commit acknowledged before it was sent. A commit
    that changes only counters and times of use changes the version a few seconds later.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._in_place = True
        self._is_read = False
        self._version: int | None = None
        self._number = 0
        self._read_at = 0.0  # counters that have changed may have done so right after
        self._changes: int | None = None
        self._content: int | None = None
        self._expires = inf  # when counters that have changed must be read again, on the clock of the event loop

    def __call__(self) -> int | None:
        """Return a number that changes with the commits of all processes, or None if it is unknown.

        Call this on the event loop. Raises Unavailable if the number cannot be read.
        """
        if not self._is_read:
            loop = asyncio.get_running_loop()
            self._version = self._read(loop.time()) if self._in_place else None
            self._is_read = True
            loop.call_soon(self._forget)
        return self._version

    def _read(self, now: float) -> int | None:
        changes = self._store.changes()
        if changes is None:
            return None
        if changes != self._changes:
            content = self._store.content_version()
            self._expires = now if content != self._content else min(self._expires, self._read_at + COUNTERS_SECONDS)
            self._changes, self._content = changes, content
        if now >= self._expires:
            self._number += 1
            self._expires = inf
        self._read_at = now
        return self._number

    async def check(self) -> None:
        """Return None as the version while the database file is moved or replaced, so that nothing is cached."""
        self._in_place = await asyncio.to_thread(self._store.in_place)

    def _forget(self) -> None:
        self._is_read = False
