"""Heavy work off the event loop: bounded threads and queues, those of token holders apart from all others."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any

from musicsvc.errors import Overloaded

if TYPE_CHECKING:
    from collections.abc import Callable

NICENESS = 10


class Work(Enum):
    """A kind of heavy work: its name, how many threads run it, and how many more may wait."""

    HASHING = ("hashing", 2, 32)
    DRAWING = ("drawing", 1, 64)
    LOOKING_UP = ("looking-up", 1, 64)
    BUILDING = ("building", 1, 512)  # of answers, whose memory is bounded before they wait
    EXPORTING = ("exporting", 2, 32)  # fewer than the readers of a store, so that answering goes on beside it
    PARSING = ("parsing", 1, 512)


# Parsing holds the interpreter: at a low priority it would only make others wait longer. Lookups wait for the store.
FOREGROUND = {Work.PARSING, Work.LOOKING_UP}


class BoundedExecutor:
    """Threads for one kind of work, and how many may wait for them."""

    def __init__(self, name: str, threads: int, waiting: int, *, stands_back: bool) -> None:
        self._threads = ThreadPoolExecutor(threads, name, initializer=stand_back if stands_back else None)
        self._capacity = threads + waiting
        self._accepted = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run the work when its turn comes. Raises Overloaded where too many wait already."""
        if self._accepted >= self._capacity:
            raise Overloaded("Too many requests of this kind are under way. Try again in a second.")
        self._accepted += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._accepted -= 1

    def close(self) -> None:
        """Finish the work under way."""
        self._threads.shutdown(wait=True)


def stand_back() -> None:
    """Let the threads that answer go first; a system without such priorities does without."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class Executors:
    """The executors of one process: for each kind of work one for token holders and one for everybody else.

    So work that anybody can ask for never delays a token holder's, and never takes its room.
    """

    def __init__(self) -> None:
        self._executors = {
            (kind, token_holder): BoundedExecutor(*kind.value, stands_back=kind not in FOREGROUND)
            for kind in Work
            for token_holder in (True, False)
        }

    async def run(self, kind: Work, work: Callable[[], Any], *, token_holder: bool) -> Any:
        """Run the work when its turn comes. Raises Overloaded where too many of its kind wait already."""
        return await self._executors[kind, token_holder].run(work)

    def close(self) -> None:
        """Finish the work under way."""
        for executor in self._executors.values():
            executor.close()
