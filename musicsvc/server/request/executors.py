"""Executors for heavy work, with bounded threads and queues, separate for token holders and other clients."""

import asyncio
import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Any

from musicsvc.errors import Overloaded
from musicsvc.server.routes.route import RateLimit

NICENESS = 10


class Work(Enum):
    """A kind of slow work. Each value is a thread name, a number of threads, and a maximum of waiting tasks."""

    SIGNING_IN = ("signing-in", 2, 16)  # and what else verifies a password
    REGISTERING = ("registering", 2, 16)
    SETTING_PASSWORDS = ("setting-passwords", 2, 16)  # by one-time links
    DRAWING = ("drawing", 1, 64)
    LOOKING_UP = ("looking-up", 1, 64)
    BUILDING = ("building", 1, 512)  # of large responses, whose memory is reserved before they queue
    EXPORTING = ("exporting", 2, 32)  # fewer threads than the store has readers, so that other requests can still read
    PARSING = ("parsing", 1, 512)
    FIGURES = ("figures", 1, 16)  # of pages, few for the same reason as exports
    RENDERING = ("rendering", 1, 256)  # takes milliseconds


# The work of `Route.prepare`, by the limit of the route: strangers who register cannot keep others from signing in.
PREPARING = {
    None: Work.SIGNING_IN,
    RateLimit.REGISTER: Work.REGISTERING,
    RateLimit.PASSWORD_LINKS: Work.SETTING_PASSWORDS,
}
# Parsing and rendering hold the interpreter lock, so a low priority would only delay other threads. Lookups wait for
# the store.
FOREGROUND = {Work.PARSING, Work.RENDERING, Work.LOOKING_UP}


class BoundedExecutor:
    """Runs one kind of work on a fixed number of threads, with a bounded queue."""

    def __init__(self, name: str, threads: int, waiting: int, *, low_priority: bool) -> None:
        self._threads = ThreadPoolExecutor(threads, name, initializer=lower_priority if low_priority else None)
        self._capacity = threads + waiting
        self._accepted = 0
        self._shared: dict[Hashable, asyncio.Task[Any]] = {}

    async def run(self, work: Callable[[], Any]) -> Any:
        """Call `work` on a thread and return its result. Raises Overloaded if the queue is full."""
        if self._accepted >= self._capacity:
            raise Overloaded("Too many requests of this kind are under way. Try again in a second.")
        self._accepted += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._accepted -= 1

    async def run_once(self, key: Hashable, work: Callable[[], Any]) -> Any:
        """Call `work` as `run` does. Calls with the same key that arrive before its end share its result."""
        task = self._shared.get(key)
        if task is None:
            task = self._shared[key] = asyncio.create_task(self.run(work))
            task.add_done_callback(partial(self._end, key))
        return await asyncio.shield(task)

    def _end(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        del self._shared[key]
        if not task.cancelled():
            task.exception()  # otherwise it is logged if nobody waits for the task any more

    def close(self) -> None:
        self._threads.shutdown(wait=True)


def lower_priority() -> None:
    """Lower the priority of the current thread, on systems that support thread priorities."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class Executors:
    """The executors of one process: for each kind of work, one for token holders and one for other clients."""

    def __init__(self) -> None:
        self._executors = {
            (kind, token_holder): BoundedExecutor(*kind.value, low_priority=kind not in FOREGROUND)
            for kind in Work
            for token_holder in (True, False)
        }

    async def run(self, kind: Work, work: Callable[[], Any], *, token_holder: bool, key: Hashable = None) -> Any:
        """Call `work` on a thread for this kind of work and client, and return its result.

        Work with the same `key`, if it has one, is done once for all that wait for it. Raises Overloaded if the queue
        is full.
        """
        executor = self._executors[kind, token_holder]
        return await (executor.run(work) if key is None else executor.run_once(key, work))

    def close(self) -> None:
        for executor in self._executors.values():
            executor.close()
