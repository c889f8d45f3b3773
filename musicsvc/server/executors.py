"""Heavy computing off the loop, bounded: what waits too long a line is told to come back."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from musicsvc.errors import Overloaded

if TYPE_CHECKING:
    from collections.abc import Callable

HASHING = ("hashing", 2, 32)
NICENESS = 10
DRAWING = ("drawing", 1, 64)
BUILDING = ("building", 1, 512)  # of answers, whose memory is bounded before they wait
EXPORTING = ("exporting", 2, 32)  # fewer than the readers of a store, so that answering goes on beside it


class Line:
    """Threads for one kind of work, and how many may wait for them."""

    def __init__(self, name: str, at_once: int, waiting: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, name, initializer=stand_back)
        self._most = at_once + waiting
        self._now = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run the work when its turn comes. Raises Overloaded where the line is long."""
        if self._now >= self._most:
            raise Overloaded("Too many requests of this kind are under way. Try again in a second.")
        self._now += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._now -= 1

    def close(self) -> None:
        """Finish what is under way."""
        self._threads.shutdown(wait=True)


def stand_back() -> None:
    """Let the threads that answer go first; a system without such priorities does without."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class Executors:
    """The lines of one process."""

    def __init__(self) -> None:
        self._hashing = Line(*HASHING)
        self._drawing = Line(*DRAWING)
        self._exporting = Line(*EXPORTING)
        self._building = Line(*BUILDING)

    async def hashing(self, work: Callable[[], Any]) -> Any:
        """Hash a password, at most two at once."""
        return await self._hashing.run(work)

    async def drawing(self, work: Callable[[], Any]) -> Any:
        """Draw a picture or a report, one at a time, so that answering goes on beside it."""
        return await self._drawing.run(work)

    async def exporting(self, work: Callable[[], Any]) -> Any:
        """Wait for a unit that may take long, at most two at once."""
        return await self._exporting.run(work)

    async def building(self, work: Callable[[], Any]) -> Any:
        """Wait for a unit that builds a large answer, one at a time."""
        return await self._building.run(work)

    def close(self) -> None:
        """Finish what is under way."""
        self._hashing.close()
        self._building.close()
        self._drawing.close()
        self._exporting.close()
