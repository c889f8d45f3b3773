"""Executors for heavy work, with bounded threads and queues, separate for token holders and other clients."""

import asyncio
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from musicsvc.errors import Crowded, Overloaded
from musicsvc.server.call import Call
from musicsvc.server.routes.route import RateLimit

NICENESS = 10
RESERVED = 2  # places that no client gets beside all others of a line
AGAIN = "Try again in a second."


class Line(NamedTuple):
    """The threads for a kind of work, and how much of it may wait.

    `account`: the places that an account may hold while others have one; `address`: the same for an address without an
    account.
    """

    name: str
    threads: int
    waiting: int
    account: int = 2
    address: int = 2


class Work(Enum):
    """A kind of slow work."""

    SIGNING_IN = Line("signing-in", 2, 16, 8, 8)  # and what else verifies a password; an office may have one address
    REGISTERING = Line("registering", 2, 16, 8, 8)
    SETTING_PASSWORDS = Line("setting-passwords", 2, 16, 8, 8)  # by one-time links
    DRAWING = Line("drawing", 1, 64, address=8)  # a browser requests about six pictures of a page at once
    LOOKING_UP = Line("looking-up", 1, 64, address=8)
    BUILDING = Line("building", 1, 512, 128, 128)  # of large responses, whose memory is reserved before they queue
    EXPORTING = Line("exporting", 2, 32)  # fewer threads than the store has readers, so that other requests can read
    PARSING = Line("parsing", 1, 512, 128, 128)
    FIGURES = Line("figures", 1, 16)  # of pages, few for the same reason as exports
    MATCHING = Line("matching", 1, 64, 8, 8)  # of listens, which read many names
    RENDERING = Line("rendering", 1, 256, 64, 64)  # takes milliseconds
    IN_TURN = Line("in-turn", 1, 1024, 256, 256)  # changes of state beside the database, one after the other


# The work of `Cost.prepare`, by the limit of the route: strangers who register cannot keep others from signing in.
PREPARING = {
    None: Work.SIGNING_IN,
    RateLimit.REGISTER: Work.REGISTERING,
    RateLimit.PASSWORD_LINKS: Work.SETTING_PASSWORDS,
}
# Parsing and rendering hold the interpreter lock, so a low priority would only delay other threads. Lookups wait for
# the store, and what runs in turn for the event loop.
FOREGROUND = {Work.PARSING, Work.RENDERING, Work.LOOKING_UP, Work.IN_TURN}


@dataclass(slots=True, eq=False)
class Job:
    """Work that has a place in a line."""

    client: str
    work: Callable[[], Any]
    result: asyncio.Future[Any]

    def do(self) -> Any:
        """Call the work, unless it was given up: an executor without a thread for it still has it in its queue."""
        return None if self.result.done() else self.work()


class BoundedExecutor:
    """Runs one kind of work on a fixed number of threads. What waits for them is bounded. Use it on one event loop.

    - Each client whose work waits has a turn, then the next one has. So a client waits for at most one piece of work of
      each other client, apart from those that run.
    - A client that holds `share` places gets no other while somebody else holds one, and if nobody does, all but two.
      So no client can close the line to the others: two places are always theirs.
    """

    def __init__(self, name: str, threads: int, waiting: int, *, share: int, low_priority: bool) -> None:
        self._threads = ThreadPoolExecutor(threads, name, initializer=lower_priority if low_priority else None)
        self._capacity = threads + waiting
        self._share = share
        self._idle = threads
        self._places: Counter[str] = Counter()  # of each client, until its work has ended
        self._waiting: dict[str, deque[Job]] = {}  # by client, in the order of their turns
        self._shared: dict[Hashable, Job] = {}

    async def run(self, work: Callable[[], Any], client: str, key: Hashable) -> Any:
        """Call `work` on a thread and return its result. Raises Overloaded or Crowded if there is no place.

        Raises MemoryError if the system starts no thread. Calls with the same `key`, unless it is None, that arrive
        before its end share its result and its place.
        """
        job = None if key is None else self._shared.get(key)
        if job is None:
            job = self._enter(work, client, key)
        elif job.client != client:
            self._hasten(job)
        try:
            return await asyncio.shield(job.result)
        except asyncio.CancelledError:
            if key is None:
                self._withdraw(job)
            raise

    def _enter(self, work: Callable[[], Any], client: str, key: Hashable) -> Job:
        held, taken = self._places[client], self._places.total()
        alone = held == taken
        if not alone and held >= self._share:
            raise Crowded(f"{held} of your requests of this kind are under way, and others wait. {AGAIN}")
        if taken >= self._capacity or (alone and held >= self._capacity - RESERVED):
            raise Overloaded(f"Too many requests of this kind are under way. {AGAIN}")
        job = Job(client, work, asyncio.get_running_loop().create_future())
        if key is not None:
            self._shared[key] = job
        job.result.add_done_callback(partial(self._leave, job, key))
        self._places[client] += 1
        self._waiting.setdefault(client, deque()).append(job)
        self._advance()
        return job

    def _leave(self, job: Job, key: Hashable, result: asyncio.Future[Any]) -> None:
        self._places[job.client] -= 1
        if not self._places[job.client]:
            del self._places[job.client]
        self._shared.pop(key, None)
        if not result.cancelled():
            result.exception()  # otherwise it is logged if nobody waits for it any more

    def _advance(self) -> None:
        """Give each idle thread the work of the client whose turn it is."""
        while self._idle and self._waiting:
            client, jobs = next(iter(self._waiting.items()))
            del self._waiting[client]
            job = jobs.popleft()
            if jobs:
                self._waiting[client] = jobs  # the last now
            self._idle -= 1
            try:
                running = self._threads.submit(job.do)
            except RuntimeError:
                self._idle += 1
                job.result.set_exception(MemoryError())
            else:
                running.add_done_callback(partial(self._notify, job.result.get_loop(), job))

    def _notify(self, loop: asyncio.AbstractEventLoop, job: Job, done: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._end, job, done)

    def _end(self, job: Job, done: Future[Any]) -> None:
        self._idle += 1
        if (error := done.exception()) is not None:
            job.result.set_exception(error)
        else:
            job.result.set_result(done.result())
        self._advance()

    def _hasten(self, job: Job) -> None:
        """Let a job for which others wait, too, be the next of its client."""
        jobs = self._waiting.get(job.client)
        if jobs is not None and job in jobs:
            jobs.remove(job)
            jobs.appendleft(job)

    def _withdraw(self, job: Job) -> None:
        """Free the place of a job that waits. One that runs has its place until it ends."""
        jobs = self._waiting.get(job.client)
        if jobs is not None and job in jobs:
            jobs.remove(job)
            if not jobs:
                del self._waiting[job.client]
            job.result.cancel()

    def close(self) -> None:
        """Begin no more work, and wait for the work that runs."""
        self._waiting.clear()
        self._threads.shutdown(wait=True)


def lower_priority() -> None:
    """Lower the priority of the current thread, on systems that support thread priorities."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class Executors:
    """The executors of one process: for each kind of work, one for token holders and one for other clients."""

    def __init__(self) -> None:
        self._executors: dict[tuple[Work, bool], BoundedExecutor] = {}
        for kind in Work:
            name, threads, waiting, account, address = kind.value
            for token_holder, share in ((True, account), (False, address)):
                executor = BoundedExecutor(name, threads, waiting, share=share, low_priority=kind not in FOREGROUND)
                self._executors[kind, token_holder] = executor

    async def run(self, kind: Work, work: Callable[[], Any], call: Call, key: Hashable = None) -> Any:
        """Call `work` on a thread for this kind of work and the client of the call, as `BoundedExecutor.run` does."""
        return await self._executors[kind, call.token_holder].run(work, call.client, key)

    def close(self) -> None:
        """Wait for the work that runs. Call it on a thread, because some of it may wait for the event loop."""
        for executor in self._executors.values():
            executor.close()
