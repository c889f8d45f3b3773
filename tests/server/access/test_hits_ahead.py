"""Requests counted in advance: limits stay exact over processes, nothing counted in advance is lost."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from musicsvc.clock import Clock
from musicsvc.errors import Unavailable
from musicsvc.server.access import hits_ahead, rate_limit_counter
from musicsvc.server.access.hits_ahead import FEWEST, KEPT_SECONDS, MOST, HitsAhead
from musicsvc.server.access.rate_limit_counter import RateLimitCounter
from musicsvc.store.engine.store import Store
from musicsvc.store.rate_limits.sqlite import MachineHitCounter
from musicsvc.store.rate_limits.window import SHARE_AHEAD, Hit, Limit, Status

LIMIT = Limit("token", 60, 60_000)
WIDE = Limit("exports", 1_000, 60_000)
HITS = [Hit(LIMIT, "7")]


@asynccontextmanager
async def processes(store: Store, count: int) -> AsyncIterator[list[RateLimitCounter]]:
    """Yield counters as several processes have them."""
    counters = [RateLimitCounter(store.url, Clock()) for _ in range(count)]
    try:
        yield counters
    finally:
        for counter in counters:
            await counter.close()


class InThread(MachineHitCounter):
    """A counter that is asked in a thread, as that of PostgreSQL is. `fault`: raised at the next use."""

    is_local = False

    def __init__(self, path: Path, clock: Callable[[], int]) -> None:
        super().__init__(path, clock)
        self.counted: list[Sequence[Hit]] = []
        self.given_back: list[tuple[Hit, int, int]] = []
        self.fault: Exception | None = None

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        self.counted.append(hits)
        self._fail()
        return super().count(hits)

    def _fail(self) -> None:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault

    def give_back(self, unused: Sequence[tuple[Hit, int, int]]) -> None:
        self._fail()
        self.given_back += unused
        super().give_back(unused)


@asynccontextmanager
async def in_thread(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RateLimitCounter]:
    """Yield a counter that is asked in a thread, on either database."""
    with monkeypatch.context() as patch:
        if store.url.startswith("sqlite"):
            patch.setattr("musicsvc.store.rate_limits.sqlite.MachineHitCounter", InThread)
        counter = RateLimitCounter(store.url, clock)
    try:
        yield counter
    finally:
        await counter.close()


def fail(counter: RateLimitCounter, fault: Exception) -> None:
    """Let the next use of the shared counter of `in_thread` raise `fault`, on SQLite."""
    assert isinstance(counter._shared, InThread)
    counter._shared.fault = fault


@contextmanager
def counted(counter: RateLimitCounter) -> Iterator[list[Any]]:
    """Record how often the counter counts."""
    if isinstance(counter._shared, InThread):
        before = len(counter._shared.counted)
        counts: list[Any] = []
        yield counts
        counts += counter._shared.counted[before:]
        return
    hooks: list[Any] = counter._shared._database.query_hooks  # type: ignore[attr-defined]
    statements: list[Any] = []
    hooks.append(lambda event: statements.append(event) if "INSERT INTO quota" in event.sql else None)
    yield statements
    hooks.pop()


async def remaining(counter: RateLimitCounter) -> int:
    (status,) = await counter.count(HITS)
    assert status.allowed
    return status.remaining


@pytest.mark.parametrize("number", range(3))
async def test_processes_together_allow_exactly_the_limit(store: Store, number: int) -> None:
    chance = random.Random(number)
    async with processes(store, 3) as counters:

        async def client(counter: RateLimitCounter) -> int:
            allowed = 0
            for _ in range(chance.randint(5, 9)):
                requests = [HITS] * chance.randint(1, 4)
                at_once = [bool(statuses) and statuses[0].allowed for statuses in counter.count_at_once(requests)]
                allowed += sum(at_once)
                if not all(at_once):
                    allowed += (await counter.count(HITS))[0].allowed
                await asyncio.sleep(chance.random() * KEPT_SECONDS)
            return allowed

        found = await asyncio.gather(*(client(counter) for counter in counters for _ in range(4)))
        assert sum(found) == LIMIT.amount


async def test_nobody_is_refused_while_another_process_has_requests_in_advance(store: Store) -> None:
    async with processes(store, 2) as (one, other):
        assert [await remaining(one) for _ in range(2)] == [59, 58]
        allowed = 0
        while (await other.count(HITS))[0].allowed:
            allowed += 1
        assert allowed == 58


async def test_what_is_not_used_is_given_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = 0.5  # long enough for the first four requests on a busy machine
    for module in (hits_ahead, rate_limit_counter):
        monkeypatch.setattr(module, "KEPT_SECONDS", kept)
    async with processes(store, 2) as (one, other):
        assert [await remaining(one) for _ in range(3)] == [59, 58, 57]
        assert await remaining(other) < 56  # the first process has some in advance
        await asyncio.sleep(3 * kept)
        assert await remaining(other) == 55
        assert await remaining(one) == 54


@pytest.mark.only_on("sqlite")
async def test_what_cannot_be_given_back_is_given_back_later(store: Store, tmp_path: Path) -> None:
    async with processes(store, 2) as (one, other):
        assert [await remaining(one) for _ in range(2)] == [59, 58]
        lock = apsw.Connection(str(tmp_path / "data" / "limits.db"))
        lock.execute("BEGIN IMMEDIATE")
        await asyncio.sleep(4 * KEPT_SECONDS)
        lock.execute("ROLLBACK")
        lock.close()
        await asyncio.sleep(10 * KEPT_SECONDS)
        assert await remaining(other) == 57


async def test_a_process_that_ends_gives_back(store: Store) -> None:
    async with processes(store, 1) as (one,):
        assert [await remaining(one) for _ in range(2)] == [59, 58]
    async with processes(store, 1) as (other,):
        assert await remaining(other) == 57


async def test_the_headers_of_one_process_count_down_by_one(store: Store) -> None:
    async with processes(store, 1) as (one,):
        for left in range(59, -1, -1):
            if left % 7 == 0:
                await asyncio.sleep(KEPT_SECONDS / 3)
            if left % 5 == 0:
                first, second = await one.count([*HITS, Hit(WIDE, "7")])
                assert (first.remaining, second.limit) == (left, WIDE)
            else:
                assert await remaining(one) == left
        (status,) = await one.count(HITS)
        assert not status.allowed


def test_the_number_follows_the_use_and_is_at_most_a_fifth_of_what_remains() -> None:
    now = 0.0
    ahead = HitsAhead(lambda: now)
    hits = [Hit(WIDE, "1")]
    assert ahead.ask(hits)[0].ahead == 0
    ahead.add(hits, [Status(WIDE, allowed=True, remaining=999, wait=60_000)])
    assert ahead.ask(hits)[0].ahead == FEWEST
    assert ahead.ask(hits)[0].ahead == 0  # another request asks already
    ahead.add(hits, [Status(WIDE, allowed=True, remaining=998, wait=60_000, ahead=40)])
    assert [ahead.use(hits)[0].remaining for _ in range(3)] == [997, 996, 995]  # type: ignore[index]  # not None
    now += KEPT_SECONDS
    assert ahead.use(hits) is None
    assert ahead.end() == [(hits[0], 0, 37)]
    assert ahead.ask(hits)[0].ahead == 6
    assert ahead.end() == []
    assert ahead.ask(hits)[0].ahead == 0
    assert not ahead
    assert LIMIT.amount < MOST * SHARE_AHEAD


async def test_requests_that_arrive_while_one_is_counted_share_the_next_count(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hits_ahead, "KEPT_SECONDS", 60.0)
    async with in_thread(store, Clock(), monkeypatch) as counter:
        assert await remaining(counter) == 59
        with counted(counter) as counts:
            found = await asyncio.gather(*(remaining(counter) for _ in range(10)))
    assert sorted(found) == list(range(49, 59))
    assert len(counts) == 2  # that of the first, which has some for others in advance, and one for the rest


async def test_the_first_requests_of_a_client_share_the_second_count(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hits_ahead, "KEPT_SECONDS", 60.0)
    async with in_thread(store, Clock(), monkeypatch) as counter:
        await counter.count([Hit(LIMIT, "another client")])  # opens the counter
        with counted(counter) as counts:
            found = await asyncio.gather(*(remaining(counter) for _ in range(10)))
        assert sorted(found) == list(range(50, 60))
        assert len(counts) == 2
        if isinstance(counter._shared, InThread):
            assert [hit.ahead for (hit,) in counts] == [0, 8]


async def test_requests_that_arrive_while_one_is_refused_are_refused_together(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_thread(store, Clock(), monkeypatch) as counter:
        while (await counter.count(HITS))[0].allowed:
            pass
        run, under_way = counter._run_in_thread, [0]

        async def observed(work: Callable[[], Any]) -> Any:
            under_way.append(under_way[-1] + 1)
            try:
                return await run(work)
            finally:
                under_way.append(under_way[-1] - 1)

        monkeypatch.setattr(counter, "_run_in_thread", observed)
        found = await asyncio.gather(*(counter.count(HITS) for _ in range(10)))
        assert [(len(statuses), statuses[0].allowed) for statuses in found] == [(1, False)] * 10
        assert max(under_way) >= 9  # one after another, they would wait too long


async def test_what_is_counted_in_advance_for_a_client_that_goes_serves_those_that_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hits_ahead, "KEPT_SECONDS", 60.0)
    async with in_thread(store, Clock(), monkeypatch) as counter:
        assert await remaining(counter) == 59
        with counted(counter) as counts:
            gone, waiting = (asyncio.create_task(remaining(counter)) for _ in range(2))
            await asyncio.sleep(0)
            gone.cancel()
            assert await waiting == 57
        assert len(counts) == 1
        assert not counter._counting


@pytest.mark.only_on("sqlite")
async def test_requests_that_wait_are_counted_in_memory_once_the_counter_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_thread(store, Clock(), monkeypatch) as counter:
        assert await remaining(counter) == 59
        fail(counter, Unavailable("the counter is gone"))
        with counted(counter) as counts:
            found = await asyncio.gather(*(remaining(counter) for _ in range(3)))
        assert sorted(found) == [57, 58, 59]  # of another count
        assert (len(counts), counter._counting) == (1, {})
        await counter.maintain()
        assert await remaining(counter) == 58
    assert [text for text in caplog.messages if "the counter is gone" in text] == [
        "the shared rate-limit counter failed, each process counts separately for now: the counter is gone."
    ]


@pytest.mark.only_on("sqlite")
async def test_a_request_is_counted_again_if_the_one_before_it_fails_and_its_client_is_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_thread(store, Clock(), monkeypatch) as counter:
        assert await remaining(counter) == 59
        fail(counter, Unavailable("the counter is gone"))
        gone, waiting = (asyncio.create_task(remaining(counter)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        assert await waiting == 58
    assert not caplog.messages


@pytest.mark.only_on("sqlite")
async def test_a_thread_gives_back_what_is_not_used_and_a_fault_ends_the_shared_count(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hits_ahead, "KEPT_SECONDS", 60.0)
    async with in_thread(store, Clock(), monkeypatch) as counter:
        shared: Any = counter._shared
        assert [await remaining(counter) for _ in range(2)] == [59, 58]
        await counter._give_back_now(counter._ahead.end(everything=True))
        ((hit, _, number),) = shared.given_back
        assert (hit.key, number) == (HITS[0].key, FEWEST)
        assert await remaining(counter) == 57
        fail(counter, Unavailable("the counter is gone"))
        await counter._give_back_now(shared.given_back)
        assert await remaining(counter) == 59  # in memory
    assert "the counter is gone" in caplog.text


@pytest.mark.only_on("sqlite")
async def test_a_counter_that_does_not_answer_in_time_is_left(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_thread(store, Clock(), monkeypatch) as counter:
        assert await remaining(counter) == 59
        fail(counter, TimeoutError())
        assert await remaining(counter) == 59  # in memory
    assert "each process counts separately for now: the shared counter did not respond in time." in caplog.text
