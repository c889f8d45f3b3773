"""Counts requests for rate limits in a counter shared by all processes, or in memory while that counter fails."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from typing import TypeVar

from musicsvc.clock import Clock
from musicsvc.errors import Unavailable
from musicsvc.server.access.hits_ahead import KEPT_SECONDS, SETTLED_SECONDS, HitsAhead
from musicsvc.server.logs.throttled_warning import ThrottledWarning
from musicsvc.store.rate_limits import shared
from musicsvc.store.rate_limits.memory import MemoryHitCounter
from musicsvc.store.rate_limits.window import Busy, Hit, Status

T = TypeVar("T")
PATIENCE_SECONDS = 2.0
RETRY_SECONDS = 0.005
PURGE_SECONDS = 30.0
WARNING_SECONDS = 300.0  # between two warnings; the shared counter may fail and recover repeatedly


class RateLimitCounter:
    def __init__(self, url: str, clock: Clock) -> None:
        """`url`: the database URL. The shared counter is opened at the first request."""
        self._clock = clock
        self._shared = shared.build(url, self._milliseconds)
        self._batch = HitBatch(self._count_now, clock)
        self._ahead = HitsAhead(_loop_time)
        self._giving_back: asyncio.Task[None] | None = None
        self._returning: asyncio.Future[None] | None = None  # requests that are being given back in a thread
        self._refused: dict[str, float] = {}  # when each exceeded limit was found to be so after a pause
        self._memory = MemoryHitCounter(self._milliseconds)
        self._threads = ThreadPoolExecutor(self._shared.threads, "counting")
        self._counting: dict[tuple[str, ...], CountInThread] = {}  # by the keys of the limits
        self._opening: asyncio.Task[None] | None = None
        self._is_shared = False
        self._warning = ThrottledWarning(WARNING_SECONDS, clock.monotonic)
        self._purged = float("-inf")

    async def count(self, hits: Sequence[Hit]) -> list[Status]:
        """Count a request toward all its rate limits, or toward none if one is exceeded. Return each limit's status."""
        statuses = await self._count_once(hits)
        exceeded = [hit.key for hit, status in zip(hits, statuses, strict=True) if not status.allowed]
        now = _loop_time()
        if self._is_shared and any(now - self._refused.get(key, -inf) > SETTLED_SECONDS for key in exceeded):
            await asyncio.sleep(SETTLED_SECONDS)  # other processes give back what they counted in advance
            statuses = await self._count_once(hits)
            self._refused |= dict.fromkeys(exceeded, _loop_time())
        return statuses

    async def _count_once(self, hits: Sequence[Hit]) -> list[Status]:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        if not self._opening.done():
            await asyncio.wait([self._opening], timeout=PATIENCE_SECONDS)
        if self._is_shared:
            try:
                return self._ahead.use(hits) or await self._count_shared(hits)
            except Unavailable as reason:
                self._fall_back(reason.message)
            except TimeoutError:
                self._fall_back("the shared counter did not respond in time")
        return self._memory.count(hits)

    def count_at_once(self, requests: Sequence[Sequence[Hit]]) -> Sequence[list[Status]]:
        """Count several requests without waiting.

        Return for each request the statuses of its limits, or an empty list if the request was not counted.
        """
        if not self._is_shared:
            return [[] for _ in requests]
        found = [self._ahead.use(hits) or [] for hits in requests]
        # What is counted in advance with the first request of a client serves its other requests of this turn.
        same = Counter(requests[at][0].key for at, statuses in enumerate(found) if not statuses)
        first = {requests[at][0].key: at for at in range(len(found) - 1, -1, -1) if not found[at]}
        self._count_into(found, {at: self._ahead.ask(requests[at], same[key] - 1) for key, at in first.items()})
        others = {at: hits for at, hits in enumerate(requests) if not found[at] and at not in first.values()}
        for at in list(others):
            if statuses := self._ahead.use(requests[at]):
                found[at] = statuses
                del others[at]
        self._count_into(found, others)
        return found

    def _count_into(self, found: list[list[Status]], requests: Mapping[int, Sequence[Hit]]) -> None:
        """Count the requests without waiting, if possible. Set `found[i]` to the status of each limit of request i."""
        if not requests or not self._shared.is_local or self._batch.waiting:
            return
        with suppress(Unavailable):
            counted = self._shared.count_now(list(requests.values()))
            for (at, hits), statuses in zip(requests.items(), counted, strict=True):
                found[at] = self._keep(hits, statuses)

    def _keep(self, hits: Sequence[Hit], statuses: Sequence[Status]) -> list[Status]:
        """Store the requests counted in advance; a task gives back unused ones later. Return each limit's status."""
        shown = self._ahead.add(hits, statuses)
        if self._ahead and self._giving_back is None:
            self._giving_back = asyncio.create_task(self._give_back())
        return shown

    async def _give_back(self) -> None:
        """Repeatedly give unused requests that were counted in advance back to the counter, until none are left."""
        try:
            while self._ahead:
                await asyncio.sleep(KEPT_SECONDS / 2)
                await self._give_back_now(self._ahead.end())
        finally:
            self._giving_back = None

    async def _give_back_now(self, unused: Sequence[tuple[Hit, int, int]]) -> None:
        if not unused or not self._is_shared:
            return
        try:
            if self._shared.is_local:
                self._shared.give_back(unused)
            else:
                self._returning = asyncio.ensure_future(self._run_in_thread(lambda: self._shared.give_back(unused)))
                await self._returning
        except Busy:
            self._ahead.keep(unused)  # for the next time
        except Unavailable as reason:
            self._fall_back(reason.message)

    async def uncount(self, hits: Sequence[Hit]) -> None:
        """Undo the counting of a request that was allowed but could not be served."""
        if not self._is_shared:
            self._memory.uncount(hits)
            return
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._run_in_thread(lambda: self._shared.uncount(hits))

    async def _count_shared(self, hits: Sequence[Hit]) -> list[Status]:
        if self._shared.is_local:
            return self._keep(hits, await self._batch.count(self._ahead.ask(hits)))
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._count_elsewhere(hits)

    async def _count_elsewhere(self, hits: Sequence[Hit]) -> list[Status]:
        """Count a request in a thread. Requests to the same limits that arrive meanwhile are counted together later.

        But if a limit turns out to be exceeded, each waiting request is counted by itself.
        """
        if self._returning is not None:
            await asyncio.wait([self._returning])  # otherwise too few requests would seem to remain
        keys, others = tuple(hit.key for hit in hits), 0
        while (counting := self._counting.get(keys)) is not None:
            await counting.wait()
            if statuses := self._ahead.use(hits):
                return statuses
            if not self._is_shared:
                raise Unavailable("the shared counter is being reopened")
            if counting.is_refused:
                return await self._count_in_thread(self._ahead.ask(hits))
            others = counting.waiting
        task = asyncio.create_task(self._count_in_thread(self._ahead.ask(hits, others)))
        self._counting[keys] = CountInThread(task)
        task.add_done_callback(lambda _: self._counting.pop(keys))
        return await asyncio.shield(task)

    async def _count_in_thread(self, hits: Sequence[Hit]) -> list[Status]:
        return self._keep(hits, await self._run_in_thread(lambda: self._shared.count(hits)))

    def _count_now(self, requests: Sequence[Sequence[Hit]]) -> list[list[Status]]:
        if not self._is_shared:  # `maintain` has begun to reopen the counter since the first request of the batch
            raise Unavailable("the shared counter is being reopened")
        return self._shared.count_now(requests)

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _open(self) -> None:
        try:
            await self._run_in_thread(self._shared.open)
            self._is_shared = True
        except Unavailable as reason:
            self._fall_back(reason.message)

    def _fall_back(self, reason: str) -> None:
        """Switch to counting in memory, and log the reason."""
        self._is_shared = False
        self._ahead = HitsAhead(_loop_time)
        self._warning.warn("the shared rate-limit counter failed, each process counts separately for now: %s.", reason)

    async def maintain(self) -> None:
        """Delete expired counts. Switch back to the shared counter if it works again."""
        if self._opening is None or not self._opening.done():
            return
        self._memory.purge()
        self._refused = {key: at for key, at in self._refused.items() if _loop_time() - at < SETTLED_SECONDS}
        try:
            if self._is_shared and not await self._run_in_thread(self._shared.in_place):
                self._is_shared = False
            if self._is_shared and self._clock.monotonic() - self._purged >= PURGE_SECONDS:
                self._purged = self._clock.monotonic()
                await self._run_in_thread(self._shared.purge)
        except Unavailable as reason:
            self._fall_back(reason.message)
        if not self._is_shared:
            await self._open()

    async def close(self) -> None:
        if self._giving_back is not None:
            self._giving_back.cancel()
        await self._give_back_now(self._ahead.end(everything=True))
        self._is_shared = False
        if self._opening is not None:
            await asyncio.wait([self._opening])
        await asyncio.to_thread(self._threads.shutdown)
        if self._opening is not None:
            await asyncio.to_thread(self._shared.close)

    def _milliseconds(self) -> int:
        return int(self._clock.monotonic() * 1000)


class CountInThread:
    """A request that a thread counts, and the number of other requests that wait for the result (`waiting`)."""

    def __init__(self, task: asyncio.Task[list[Status]]) -> None:
        self._task = task
        self.waiting = 0

    @property
    def is_refused(self) -> bool:
        """Whether the request was counted and refused."""
        return self._task.exception() is None and not all(status.allowed for status in self._task.result())

    async def wait(self) -> None:
        """Wait until the request is counted, or counting has failed."""
        self.waiting += 1
        try:
            await asyncio.wait([self._task])
        finally:
            self.waiting -= 1


class HitBatch:
    """Counts all requests of one turn of the event loop in one transaction, which is as fast as counting a single one.

    While another process holds the lock, requests wait and are counted together later.
    """

    def __init__(self, count: Callable[[Sequence[Sequence[Hit]]], list[list[Status]]], clock: Clock) -> None:
        self._count = count
        self._clock = clock
        self._requests: list[tuple[Sequence[Hit], asyncio.Future[list[Status]]]] = []
        self._began = 0.0

    @property
    def waiting(self) -> int:
        """The number of requests that are not counted yet."""
        return len(self._requests)

    async def count(self, hits: Sequence[Hit]) -> list[Status]:
        """Count a request. Raises Unavailable if that fails, or Busy if the lock is not free in time."""
        loop = asyncio.get_running_loop()
        if not self._requests:
            self._began = self._clock.monotonic()
            loop.call_soon(self._flush)
        future: asyncio.Future[list[Status]] = loop.create_future()
        self._requests.append((hits, future))
        return await future

    def _flush(self) -> None:
        try:
            statuses = self._count([hits for hits, _ in self._requests])
        except Busy as error:
            if self._clock.monotonic() - self._began < PATIENCE_SECONDS:
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._flush)
            else:
                self._fail(error)
        except Exception as error:  # noqa: BLE001 - each request gets it
            self._fail(error)
        else:
            requests, self._requests = self._requests, []
            for (_, future), status in zip(requests, statuses, strict=True):
                if not future.done():  # the client may have disconnected
                    future.set_result(status)

    def _fail(self, error: Exception) -> None:
        requests, self._requests = self._requests, []
        for _, future in requests:
            if not future.done():
                future.set_exception(error)


def _loop_time() -> float:
    """Return the event loop's time in seconds. Unlike the clock of the service, it always runs in real time."""
    return asyncio.get_running_loop().time()
