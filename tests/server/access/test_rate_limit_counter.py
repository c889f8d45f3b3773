"""Counting in memory, and in a counter that processes share: on its thread, together, in memory while it fails."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from musicsvc.clock import Clock
from musicsvc.server.access import rate_limit_counter
from musicsvc.server.access.rate_limit_counter import RateLimitCounter
from musicsvc.store.engine.store import Store
from musicsvc.store.rate_limits.sqlite import SqliteHitCounter
from musicsvc.store.rate_limits.window import Hit, Limit, Status
from tests.support.waiting import PATIENCE, until

LIMIT = Limit("token", 60, 60_000)
HITS = [Hit(LIMIT, "7")]
sqlite = pytest.mark.only_on("sqlite")


@asynccontextmanager
async def counting(store: Store, workers: int = 2) -> AsyncIterator[RateLimitCounter]:
    """Yield a counter as a process of a server with `workers` has it."""
    counter = RateLimitCounter(store.url, Clock(), workers)
    try:
        yield counter
    finally:
        await counter.close()


async def count(counter: RateLimitCounter, hits: Sequence[Hit] = HITS) -> Status:
    counted = counter.count(hits)
    return (counted if isinstance(counted, list) else await counted)[0]


class Held(SqliteHitCounter):
    """Notes how many requests are counted together, and counts only when `free` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, lambda: 1_000_000)
        self.free = threading.Event()
        self.together: list[int] = []

    def count_all(self, requests: Sequence[Sequence[Hit]]) -> list[list[Status]]:
        self.together.append(len(requests))
        assert self.free.wait(PATIENCE)
        return super().count_all(requests)


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    """Let the shared counter be one that counts only when `free` is set."""
    held = Held(tmp_path / "limits.db")
    monkeypatch.setattr(rate_limit_counter, "shared_counter", lambda *_: held)
    return held


@sqlite
async def test_a_single_worker_counts_at_once_and_makes_no_file(store: Store, tmp_path: Path) -> None:
    async with counting(store, 1) as one, counting(store, 1) as other:
        assert isinstance(one.count(HITS), list)
        await one.maintain()
        assert [(await count(each)).remaining for each in (one, one, other)] == [58, 57, 59]
        await one.uncount(HITS)
        assert (await count(one)).remaining == 57
    assert not list(tmp_path.rglob("limits.db"))  # noqa: ASYNC240 - done at once


async def test_several_processes_share_their_counts(store: Store) -> None:
    async with counting(store) as one, counting(store) as other:
        found = [await count(each) for each in (one, other, one)]
        assert [status.remaining for status in found] == [59, 58, 57]
        await other.uncount(HITS)
        together = await asyncio.gather(*(count(one) for _ in range(40)), *(count(other) for _ in range(40)))
        assert sum(status.allowed for status in together) == 58
        assert sorted(status.remaining for status in together if status.allowed) == list(range(58))


async def test_requests_that_arrive_while_others_are_counted_are_counted_together(store: Store, held: Held) -> None:
    async with counting(store) as counter:
        first = asyncio.create_task(count(counter))
        await until(lambda: held.together)
        rest = [asyncio.create_task(count(counter, [Hit(LIMIT, str(number % 3))])) for number in range(9)]
        await asyncio.sleep(0)
        rest[0].cancel()  # a client that leaves keeps nobody waiting
        held.free.set()
        found = await asyncio.gather(first, *rest, return_exceptions=True)
    assert [each.remaining for each in found if isinstance(each, Status)] == [59, 59, 59, 58, 58, 58, 57, 57, 57]
    assert held.together == [1, 9]


async def test_requests_are_counted_in_memory_while_the_shared_counter_does_not_respond(
    store: Store, held: Held, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rate_limit_counter, "PATIENCE_SECONDS", 0.05)
    async with counting(store) as counter:
        assert [status.remaining for status in await asyncio.gather(count(counter), count(counter))] == [59, 58]
        assert (await count(counter)).remaining == 57
        assert held.together == [2]
        held.free.set()
        monkeypatch.setattr(rate_limit_counter, "PATIENCE_SECONDS", PATIENCE)
        await counter.maintain()
        assert (await count(counter)).remaining == 57  # of the shared counter
    alone = "the shared rate-limit counter failed, each process counts separately for now"
    assert caplog.messages == [f"{alone}: the shared counter did not respond in time."]
