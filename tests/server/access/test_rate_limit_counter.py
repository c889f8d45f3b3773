"""Counting in memory, and in a counter that processes share: together, in advance, in memory while it fails."""

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from musicsvc.clock import Clock
from musicsvc.server.access import rate_limits
from musicsvc.server.access.rate_limits import RateLimitCounter
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import path_of
from musicsvc.store.rate_limits.shared import SharedHitCounter
from musicsvc.store.rate_limits.sqlite import SqliteHitCounter
from musicsvc.store.rate_limits.window import Hit, Limit, Status
from tests.store.rate_limits.test_window import Model
from tests.support.bounds import Bounds
from tests.support.examples import examples
from tests.support.monotonic_clock import StoppedClock
from tests.support.waiting import PATIENCE, until

LIMIT = Limit("token", 60, 60_000)
HITS = [Hit(LIMIT, "7")]
NUMBERS = itertools.count()
sqlite = pytest.mark.only_on("sqlite")


@asynccontextmanager
async def counting(store: Store, workers: int = 2, clock: Clock | None = None) -> AsyncIterator[RateLimitCounter]:
    """Yield a counter as a process of a server with `workers` has it."""
    counter = RateLimitCounter(store, clock or Clock(), workers)
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

    def count_all(
        self, requests: Sequence[Sequence[Hit]], unused: Sequence[tuple[Hit, int, int | None]] = ()
    ) -> list[list[Status]]:
        self.together.append(len(requests))
        assert self.free.wait(PATIENCE)
        return super().count_all(requests, unused)


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    """Let the shared counter be one that counts only when `free` is set."""
    held = Held(tmp_path / "limits.db")
    monkeypatch.setattr(rate_limits, "shared_counter", lambda *_: held)
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


@pytest.mark.on_both
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


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    """The clock of the processes. That of the counter that they share is a minute ahead."""
    clock = StoppedClock()

    def shared(store: Store, own: Callable[[], int], _: int) -> SharedHitCounter:
        def time() -> int:
            return own() + 60_000

        if (path := path_of(store.url)) is not None:
            return SqliteHitCounter(path.with_name("limits.db"), time)
        from musicsvc.store.rate_limits.postgres import PostgresHitCounter  # noqa: PLC0415 - SQLite does without

        return PostgresHitCounter(store, time)

    monkeypatch.setattr(rate_limits, "shared_counter", shared)
    return clock


@pytest.mark.on_both
async def test_requests_of_a_busy_client_are_counted_in_advance_and_given_back(
    store: Store, stopped: StoppedClock
) -> None:
    busy = [Hit(Limit("token", 300, 60_000), "1")]
    both = [*busy, Hit(Limit("sign_in", 300, 60_000), "1")]
    async with counting(store, clock=stopped) as one, counting(store, clock=stopped) as other:
        assert [(await count(one, busy)).remaining for _ in range(24)] == [*range(299, 275, -1)]
        stopped.seconds += 0.5
        at_once = [one.count(busy) for _ in range(5)]
        assert [each[0].wait for each in at_once if isinstance(each, list)] == [59_500] * 5
        assert 300 - 40 < (await count(other, busy)).remaining < 300 - 30
        # Toward several limits: exactly what is used. It ends what was counted in advance.
        assert [(await count(each, both)).remaining for each in (one, other)] == [300 - 31, 300 - 32]
        for _ in range(14):
            await count(one, busy)
        assert 300 - 57 < (await count(other, busy)).remaining < 300 - 47
        stopped.seconds += 1
        await one.maintain()
        assert (await count(other, busy)).remaining == 300 - 48


@sqlite
async def test_requests_that_wait_for_a_count_may_have_been_counted_in_advance_by_it(store: Store, held: Held) -> None:
    busy = [Hit(Limit("token", 300, 60_000), "1")]
    async with counting(store, clock=StoppedClock()) as counter:
        held.free.set()
        assert [(await count(counter, busy)).remaining for _ in range(11)] == [*range(299, 288, -1)]
        held.free.clear()
        waiting = [asyncio.create_task(count(counter, busy))]
        await until(lambda: len(held.together) == 4)
        waiting += [asyncio.create_task(count(counter, busy)) for _ in range(8)]
        await asyncio.sleep(0)
        held.free.set()
        assert [status.remaining for status in await asyncio.gather(*waiting)] == [*range(288, 279, -1)]
    assert held.together == [1, 3, 7, 10]


cases = st.tuples(
    st.integers(1, 2),  # processes
    st.integers(1, 60),  # the amount
    st.sampled_from([1000, 2000]),  # the window
    st.lists(
        st.tuples(
            st.booleans(),  # which process
            st.sampled_from([0, 0, 1, 1, 2, 4, 7, 8, 9, 15, 16, 24]),  # pause, in eighths of a second
            st.integers(1, 15),  # requests
            st.integers(1, 3),  # at once
            st.booleans(),  # toward another limit, too
        ),
        max_size=16,
    ),
)


@pytest.mark.slow
@given(case=cases)
@example(
    case=(
        1,
        20,
        1000,
        [(False, after, number, 1, False) for after, number in ((0, 1), (7, 2), (1, 1), (7, 15), (0, 15))],
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100))
def test_counting_in_advance_exceeds_no_limit_and_refuses_a_client_of_one_process_no_earlier(
    store: Store,
    stopped: StoppedClock,
    bounds: Bounds,
    case: tuple[int, int, int, list[tuple[bool, int, int, int, bool]]],
) -> None:
    processes, amount, window, steps = case
    bounds(lease_single=0, lease_share=2)
    model, narrow = Model(amount, window), [Hit(Limit("token", amount, window), str(next(NUMBERS)))]
    wide = Hit(Limit("exports", 1_000_000, window), narrow[0].subject)

    async def play() -> None:
        async with counting(store, clock=stopped) as one, counting(store, clock=stopped) as other:
            for second, pause, requests, together, wider in steps:
                stopped.seconds += pause / 8
                counter = other if second and processes > 1 else one
                hits = [*narrow, wide] if wider else narrow
                for _ in range(requests):
                    before = model.remaining(now := int(stopped.seconds * 1000))
                    found = await asyncio.gather(*(count(counter, hits) for _ in range(together)))
                    allowed = [status.remaining for status in found if status.allowed]
                    assert len(allowed) <= before
                    assert processes > 1 or len(allowed) == min(before, together)
                    assert processes > 1 or all(
                        remaining < before - at for at, remaining in enumerate(sorted(allowed, reverse=True))
                    )
                    for _ in allowed:
                        model.count(now)

    asyncio.run(play())


async def test_requests_are_counted_in_memory_while_the_shared_counter_does_not_respond(
    store: Store, held: Held, bounds: Bounds, caplog: pytest.LogCaptureFixture
) -> None:
    bounds(patience_seconds=0.05)
    async with counting(store) as counter:
        assert [status.remaining for status in await asyncio.gather(count(counter), count(counter))] == [59, 58]
        assert (await count(counter)).remaining == 57
        assert held.together == [2]
        held.free.set()
        bounds(patience_seconds=PATIENCE)
        await counter.maintain()
        assert (await count(counter)).remaining == 57  # of the shared counter
    alone = "the shared rate-limit counter failed, each process counts separately for now"
    assert caplog.messages == [f"{alone}: the shared counter did not respond in time."]
