"""Counting requests together with all processes, and by this one alone while that cannot be."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from musicsvc.errors import Unavailable
from musicsvc.store.rate_limits import shared
from musicsvc.store.rate_limits.memory import MemoryHitCounter
from musicsvc.store.rate_limits.window import Busy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from musicsvc.clock import Clock
    from musicsvc.store.rate_limits.window import Hit, Status

T = TypeVar("T")
log = logging.getLogger("musicsvc")
PATIENCE_SECONDS = 2.0
PURGE_SECONDS = 30.0
TOLD_SECONDS = 300.0  # what goes and comes back again and again is told once in a while


class RateLimitCounter:
    """Counts requests; never fails one."""

    def __init__(self, url: str, clock: Clock) -> None:
        """`url` is that of the store; nothing is opened before the first request is counted."""
        self._clock = clock
        self._shared = shared.build(url, self._milliseconds)
        self._own = MemoryHitCounter(self._milliseconds)
        self._threads = ThreadPoolExecutor(self._shared.threads, "counting")
        self._opening: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._together = False
        self._waiting = 0
        self._told = self._purged = float("-inf")

    async def count(self, hits: Sequence[Hit]) -> list[Status]:
        """Let a request in that makes these hits, or refuse it."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        if not self._opening.done():
            await asyncio.wait([self._opening], timeout=PATIENCE_SECONDS)
        if self._together:
            try:
                return await self._count_together(hits)
            except Unavailable as reason:
                self._fall_back(reason.message)
            except TimeoutError:
                self._fall_back("the others cannot be reached in time")
        return self._own.count(hits)

    async def uncount(self, hits: Sequence[Hit]) -> None:
        """Uncount a request that was allowed but could not be served."""
        if not self._together:
            self._own.uncount(hits)
            return
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._run_in_thread(lambda: self._shared.uncount(hits))

    async def _count_together(self, hits: Sequence[Hit]) -> list[Status]:
        # Behind others that wait there is no need to try: each try holds the event loop up a little.
        if not self._waiting:
            with suppress(Busy):
                return self._shared.count_now(hits)
        self._waiting += 1
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self._run_in_thread(lambda: self._shared.count(hits))
        finally:
            self._waiting -= 1

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _open(self) -> None:
        try:
            await self._run_in_thread(self._shared.open)
        except Unavailable as reason:
            self._fall_back(reason.message)
        else:
            self._together = True

    def _fall_back(self, reason: str) -> None:
        self._together = False
        if self._clock.monotonic() - self._told >= TOLD_SECONDS:
            log.warning("Limits are counted by each process alone for now: %s.", reason)
            self._told = self._clock.monotonic()

    async def maintain(self, *, last: bool = False) -> None:
        """Drop what is old, and count together again as soon as that can be; waits for neither."""
        if last:
            await self._end()
        elif self._opening is not None and self._opening.done() and (self._keeping is None or self._keeping.done()):
            if self._keeping is not None:
                self._keeping.result()
            self._keeping = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        self._own.purge()
        try:
            if self._together and not await self._run_in_thread(self._shared.in_place):
                self._together = False
            if self._together and self._clock.monotonic() - self._purged >= PURGE_SECONDS:
                self._purged = self._clock.monotonic()
                await self._run_in_thread(self._shared.purge)
        except Unavailable as reason:
            self._fall_back(reason.message)
        if not self._together:
            await self._open()

    async def _end(self) -> None:
        self._together = False
        for task in (self._opening, self._keeping):
            if task is not None:
                await asyncio.wait([task])
        await asyncio.to_thread(self._threads.shutdown)
        if self._opening is not None:
            await asyncio.to_thread(self._shared.close)

    def _milliseconds(self) -> int:
        return int(self._clock.monotonic() * 1000)
