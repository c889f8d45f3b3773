"""The version of the database, for caches of what was read from it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from musicsvc.store.engine.store import Store


class DatabaseVersion:
    """Reads the version at most once per turn of the event loop.

    All requests of a turn arrived before it began, so each sees every commit acknowledged before it was sent.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._in_place = True
        self._version: int | None = None
        self._is_read = False

    def __call__(self) -> int | None:
        """Return a number that changes with each commit of any process, or None if it is unknown.

        Call this on the event loop. Raises Unavailable if the number cannot be read.
        """
        if not self._is_read:
            self._version = self._store.changes() if self._in_place else None
            self._is_read = True
            asyncio.get_running_loop().call_soon(self._forget)
        return self._version

    async def check(self) -> None:
        """Return None as the version while the database file is moved or replaced, so that nothing is cached."""
        self._in_place = await asyncio.to_thread(self._store.in_place)

    def _forget(self) -> None:
        self._is_read = False
