"""The requests of one turn of the event loop are counted together, and each gets its own result."""

import asyncio
from collections.abc import Sequence
from math import inf

import pytest

from musicsvc.clock import Clock, MovableClock
from musicsvc.errors import Unavailable
from musicsvc.server.access.rate_limit_counter import PATIENCE_SECONDS, HitBatch, RateLimitCounter
from musicsvc.store.engine.store import Store
from musicsvc.store.rate_limits.window import Busy, Hit, Limit, Status

LIMIT = Limit("token", 10, 60_000)


def hits(number: int) -> list[Hit]:
    return [Hit(LIMIT, str(number))]


class Counter:
    """Records the batches, and returns as remaining requests the number of the subject."""

    def __init__(self, fault: Exception | None = None, faults: float = inf) -> None:
        """`faults`: how often the fault occurs before the counter works."""
        self.batches: list[list[str]] = []
        self._fault = fault
        self._faults = faults

    def __call__(self, requests: Sequence[Sequence[Hit]]) -> list[list[Status]]:
        self.batches.append([each.subject for (each,) in requests])
        if self._fault is not None and len(self.batches) <= self._faults:
            raise self._fault
        return [[Status(LIMIT, allowed=True, remaining=int(each.subject), wait=0)] for (each,) in requests]


async def test_each_request_of_a_turn_gets_its_own_status_from_one_count() -> None:
    counter = Counter()
    batch = HitBatch(counter, Clock())
    found = await asyncio.gather(*(batch.count(hits(number)) for number in range(5)))
    assert [status.remaining for (status,) in found] == [0, 1, 2, 3, 4]
    assert [status.remaining for status in await batch.count(hits(7))] == [7]
    assert counter.batches == [["0", "1", "2", "3", "4"], ["7"]]


async def test_a_fault_is_that_of_each_request_and_the_next_turn_counts_again() -> None:
    batch = HitBatch(Counter(Unavailable("The disk is full.")), Clock())
    for size in (3, 1):
        found = await asyncio.gather(*(batch.count(hits(number)) for number in range(size)), return_exceptions=True)
        assert [str(each) for each in found] == ["The disk is full."] * size


async def test_requests_that_meet_a_lock_are_counted_together_when_it_is_free() -> None:
    counter = Counter(Busy("The file is locked."), faults=2)
    batch = HitBatch(counter, Clock())
    first = asyncio.create_task(batch.count(hits(1)))
    await asyncio.sleep(0)
    assert batch.waiting == 1
    found = [await batch.count(hits(2)), await first]
    assert [status.remaining for (status,) in found] == [2, 1]
    assert counter.batches[-1] == ["1", "2"]
    assert (len(counter.batches), batch.waiting) == (3, 0)


async def test_a_lock_that_is_never_free_is_a_fault_after_a_while() -> None:
    clock = MovableClock(0)
    batch = HitBatch(Counter(Busy("The file is locked.")), clock)
    waiting = asyncio.create_task(batch.count(hits(1)))
    await asyncio.sleep(0.03)
    assert not waiting.done()
    batch._began -= PATIENCE_SECONDS
    with pytest.raises(Busy, match="locked"):
        await waiting


async def test_a_client_that_leaves_keeps_nobody_waiting() -> None:
    batch = HitBatch(Counter(), Clock())
    first, second = (asyncio.create_task(batch.count(hits(number))) for number in (1, 2))
    await asyncio.sleep(0)
    first.cancel()
    assert [status.remaining for status in await second] == [2]
    with pytest.raises(asyncio.CancelledError):
        await first


@pytest.mark.only_on("sqlite")
async def test_a_request_is_counted_while_the_shared_counter_is_reopened(store: Store, clock: MovableClock) -> None:
    counter = RateLimitCounter(store.url, clock)
    assert [status.remaining for status in await counter.count(hits(1))] == [9]
    waiting = asyncio.create_task(counter.count(hits(1)))
    await asyncio.sleep(0)
    counter._is_shared = False  # as `maintain` does, which then closes the connections
    counter._shared.close()
    assert [status.remaining for status in await waiting] == [9]  # in memory
    await counter.close()
