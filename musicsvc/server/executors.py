"""Heavy computing off the loop, bounded: what waits too long a line is told to come back."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from musicsvc.errors import TooMany

if TYPE_CHECKING:
    from collections.abc import Callable

HASHING_AT_ONCE = 2
HASHING_WAITING = 32


class Executors:
    """The threads for heavy computing of one process."""

    def __init__(self) -> None:
        self._hashing = ThreadPoolExecutor(HASHING_AT_ONCE, "hashing")
        self._waiting = 0

    async def hashing(self, work: Callable[[], Any]) -> Any:
        """Run a password hash, at most two at once. Raises TooMany where the line is long."""
        if self._waiting >= HASHING_WAITING:
            raise TooMany("Too many registrations at once. Try again in a second.", retry_after=1)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._hashing, work)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish what is under way."""
        self._hashing.shutdown(wait=True)
