"""Counts requests for rate limits: in memory for a single worker on SQLite, otherwise shared by processes.

While a shared counter fails, each process counts in memory.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from musicsvc.clock import Clock
from musicsvc.errors import Unavailable
from musicsvc.server.logs.throttled_warning import ThrottledWarning
from musicsvc.store.engine.url import path_of
from musicsvc.store.rate_limits.leases import Leases
from musicsvc.store.rate_limits.memory import Counts, MemoryHitCounter
from musicsvc.store.rate_limits.window import Hit, SharedHitCounter, Status

T = TypeVar("T")
PATIENCE_SECONDS = 2.0
PURGE_SECONDS = 5.0
WARNING_SECONDS = 300.0  # between two warnings; the shared counter may fail and recover repeatedly


class RateLimitCounter:
    def __init__(self, url: str, clock: Clock, workers: int = 1) -> None:
        """`url`: the database URL; `workers`: the number of processes of the server."""
        self._clock = clock
        self._memory = MemoryHitCounter(self._milliseconds)
        self._shared = shared_counter(url, self._milliseconds, workers)
        self._leases = Leases(self._milliseconds)
        self._fails = False
        self._thread = ThreadPoolExecutor(1, "counting")
        self._waiting: list[tuple[Sequence[Hit], asyncio.Future[list[Status]]]] = []
        self._counting: asyncio.Task[None] | None = None
        self._warning = ThrottledWarning(WARNING_SECONDS, clock.monotonic)
        self._purged = float("-inf")

    def count(self, hits: Sequence[Hit]) -> list[Status] | Awaitable[list[Status]]:
        """Count a request toward all its rate limits, or toward none if one is exceeded.

        Return each limit's status or, if the counter that processes share must be asked, an awaitable for it.
        """
        if self._shared is None or self._fails:
            return self._memory.count(hits)
        if leased := self._leases.spend(hits):
            return leased
        future: asyncio.Future[list[Status]] = asyncio.get_running_loop().create_future()
        self._waiting.append((hits, future))
        if self._counting is None:
            self._counting = asyncio.create_task(self._count_waiting(self._shared))
        return future

    async def _count_waiting(self, shared: SharedHitCounter) -> None:
        """Count the requests that wait. Those that arrive meanwhile are counted together afterwards."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            counted = await self._count_together(shared, [hits for hits, _ in waiting])
            for (_, future), statuses in zip(waiting, counted, strict=True):
                if not future.done():  # the client may have disconnected
                    future.set_result(statuses)
        self._counting = None

    async def _count_together(self, shared: SharedHitCounter, requests: list[Sequence[Hit]]) -> list[list[Status]]:
        leased = [self._leases.spend(hits) for hits in requests]
        rest = [hits for hits, statuses in zip(requests, leased, strict=True) if not statuses]
        if rest and not self._fails:
            with suppress(Unavailable):
                counted = iter(await self._ask(shared, rest))
                return [statuses or next(counted) for statuses in leased]
        return [statuses or self._memory.count(hits) for hits, statuses in zip(requests, leased, strict=True)]

    async def _ask(self, shared: SharedHitCounter, requests: Sequence[Sequence[Hit]] = ()) -> list[list[Status]]:
        """Count requests, and some in advance, after what is left of leases that end was given back."""
        now = self._milliseconds()
        unused, wanted = self._leases.end(requests, now)
        together = [*requests, *wanted]

        def count() -> list[list[Status]]:
            for lease in unused:
                shared.uncount(*lease)
            return shared.count_all(together) if together else []

        counted = await self._run(count) if unused or together else []
        self._leases.begin([*zip(together, counted, strict=True)], len(requests), now)
        return counted

    async def uncount(self, hits: Sequence[Hit]) -> None:
        """Undo the counting of a request that was allowed but could not be served."""
        if (shared := self._shared) is None or self._fails:
            self._memory.uncount(hits)
            return
        with suppress(Unavailable):
            await self._run(lambda: shared.uncount(hits))

    def hand_over(self, send: Callable[[Counts], None]) -> None:
        """Pass the counts in memory to `send`, and from now on each change of them. Another process continues them."""
        self._memory.hand_over(send)

    def take_over(self, counts: Counts) -> None:
        """Add counts, or changes of them, that another process has handed over."""
        self._memory.take_over(counts)

    async def _run(self, work: Callable[[], T]) -> T:
        """Run `work` of the shared counter on its thread. If that fails, log the reason, and count in memory."""
        reason = "the shared counter did not respond in time"
        with suppress(TimeoutError):
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    return await asyncio.get_running_loop().run_in_executor(self._thread, work)
            except Unavailable as error:
                reason = error.message
        self._fails = True
        self._warning.warn("the shared rate-limit counter failed, each process counts separately for now: %s.", reason)
        raise Unavailable(reason)

    async def maintain(self) -> None:
        """Delete expired counts. Switch back to the shared counter if it works again."""
        self._memory.purge()
        if (shared := self._shared) is None:
            return
        with suppress(Unavailable):
            await self._run(shared.check)
            self._fails = False
            await self._ask(shared)
            if self._clock.monotonic() - self._purged >= PURGE_SECONDS:
                self._purged = self._clock.monotonic()
                await self._run(shared.purge)

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)
        if self._shared is not None:
            await asyncio.to_thread(self._shared.close)

    def _milliseconds(self) -> int:
        return int(self._clock.monotonic() * 1000)


def shared_counter(url: str, clock: Callable[[], int], workers: int) -> SharedHitCounter | None:
    """Return the counter that all processes with the database share, or None if there are no others."""
    path = path_of(url)
    if path is None:
        from musicsvc.store.rate_limits.postgres import PostgresHitCounter  # noqa: PLC0415 - loads its driver only if used

        return PostgresHitCounter(url)
    if workers == 1:
        return None
    from musicsvc.store.rate_limits.sqlite import SqliteHitCounter, file_of  # noqa: PLC0415 - the same

    return SqliteHitCounter(file_of(path), clock)
