"""Runs small reading units of work in groups, each on one thread and in one transaction.

While a group runs, the reads that arrive wait for the next one. So they share the costs of a transaction and of waking
up a thread and the event loop, and threads seldom compete with each other for Python's global lock.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store

T = TypeVar("T")
SLICE_SECONDS = 0.002  # reads of a group that have not begun by then go back to the queue
PATIENCE_SECONDS = 0.005  # reads that have waited so long do not wait for the running groups any more


class Read(NamedTuple):
    unit: Callable[[], Any]
    result: asyncio.Future[Any]
    due: float  # in seconds of the event loop's clock


class Reads:
    """The queue of small reads. Use it on the event loop only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[Read] = []
        self._running = 0  # groups

    async def run(self, unit: Callable[[], T], within: float) -> T:
        """Call `unit` in a transaction that begins after this call. Return the result. `within`: see `Store.read`."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            if self._running < self._store.parallel_reads:
                loop.call_soon(self._begin)
            else:
                loop.call_later(PATIENCE_SECONDS, self._begin)
        read = Read(unit, loop.create_future(), loop.time() + within)
        self._waiting.append(read)
        result: T = await read.result
        return result

    def _begin(self) -> None:
        """Start all waiting reads, in as many groups as can run in parallel."""
        waiting, self._waiting = self._waiting, []
        groups = min(len(waiting), self._store.parallel_reads)
        for each in range(groups):
            self._submit(waiting[each::groups])

    def _submit(self, reads: Sequence[Read]) -> None:
        """Start a group. Only a read that is alone waits for locks, so that it does not delay the others."""
        units, within = [read.unit for read in reads], reads[0].due - asyncio.get_running_loop().time()
        try:
            group = self._store.read(partial(_run_all, units), within=within, patient=len(reads) == 1)
            running = asyncio.wrap_future(group)
        except Failure as failure:
            for read in reads:
                _set(read, failure)
        else:
            self._running += 1
            running.add_done_callback(partial(self._finish, reads))

    def _finish(self, reads: Sequence[Read], done: asyncio.Future[list[Any]]) -> None:
        self._running -= 1
        error = done.exception()
        if error is None:
            outcomes = done.result()
            for read, outcome in zip(reads, outcomes, strict=False):
                _set(read, outcome)
            self._waiting[:0] = reads[len(outcomes) :]
        elif len(reads) == 1:
            _set(reads[0], error)
        else:  # the transaction failed; which of the reads caused that shows when each runs alone
            for read in reads:
                self._submit([read])
        if self._running < self._store.parallel_reads:
            self._begin()
        elif self._waiting:
            asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._begin)


def _run_all(units: Sequence[Callable[[], Any]]) -> list[Any]:
    """Call units in order until SLICE_SECONDS have passed, at least one. Return the result or failure of each call."""
    end = time.monotonic() + SLICE_SECONDS
    outcomes: list[Any] = []
    for unit in units:
        try:
            outcomes.append(unit())
        except Failure as failure:
            outcomes.append(failure)
        if time.monotonic() > end:
            break
    return outcomes


def _set(read: Read, outcome: object) -> None:
    """Set the result or the failure of a read, unless the read was cancelled."""
    if read.result.done():
        return
    if isinstance(outcome, BaseException):
        read.result.set_exception(outcome)
    else:
        read.result.set_result(outcome)
