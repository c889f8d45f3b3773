"""Functions that wait for SQLite's writer thread, each with the future of its result."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Job:
    """A queued function `unit` with its future. An `urgent` one may use reserved disk space if the disk is full.

    `counters_only`: it changes nothing but counters and times of use, which are versioned separately.
    `loop`: the event loop of an asyncio future, which only that loop may complete; None for any other future.
    """

    unit: Callable[[], Any]
    deadline: float  # end of waiting for locks of other processes, in seconds of time.monotonic
    future: Future[Any] | asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop | None = None
    urgent: bool = False
    counters_only: bool = False
    result: Any = None
    error: BaseException | None = None
    settled: bool = False

    def start(self) -> bool:
        """Return False if the future was cancelled, so that the unit need not run."""
        if isinstance(self.future, Future):
            return self.future.set_running_or_notify_cancel()
        return not self.future.cancelled()

    def complete(self) -> None:
        """Complete the future with the result or the error, unless it was cancelled. Call this on its event loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def settle(jobs: Iterable[Job]) -> None:
    """Complete the futures of all jobs that are not settled. Each event loop is woken once for all of its jobs."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        if job.settled:
            continue
        job.settled = True
        if job.loop is None:
            job.complete()
        else:
            by_loop.setdefault(job.loop, []).append(job)
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed, so nothing waits for the futures
            loop.call_soon_threadsafe(complete_all, some)


def complete_all(jobs: Iterable[Job]) -> None:
    for job in jobs:
        job.complete()


class Turns:
    """Collects the jobs of each iteration of an event loop, so that they are queued and committed together."""

    def __init__(self, queue: Callable[[list[Job]], None]) -> None:
        """Call `queue` with the jobs of each iteration of an event loop."""
        self._queue = queue
        self._turns: dict[asyncio.AbstractEventLoop, list[Job]] = {}

    def add(self, unit: Callable[[], Any], *, counters_only: bool) -> asyncio.Future[Any]:
        """Queue `unit` in the next iteration of the running event loop. Return its future."""
        loop = asyncio.get_running_loop()
        jobs = self._turns.get(loop)
        if jobs is None:
            jobs = self._turns[loop] = []
            loop.call_soon(self._end_turn, loop)
        future: asyncio.Future[Any] = loop.create_future()
        jobs.append(Job(unit, 0.0, future, loop, counters_only=counters_only))
        return future

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._queue(self._turns.pop(loop))
