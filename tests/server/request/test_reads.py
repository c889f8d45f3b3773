"""Small reads run in groups, and each has its own result."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from musicsvc.errors import NotFound, Unavailable
from musicsvc.server.request.reads import Reads
from musicsvc.store.catalog import genres
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre
from tests.support.bounds import Bounds

PATIENCE = 30.0


def raising(error: Exception) -> Callable[[], None]:
    """Return a unit that fails."""

    def unit() -> None:
        raise error

    return unit


@pytest.mark.on_both
async def test_each_read_of_a_group_has_its_own_result(store: Store) -> None:
    run = partial(Reads(store).run, within=PATIENCE)
    units = [
        lambda: "first",
        raising(NotFound("Missing.")),
        lambda: fetch("SELECT 1 FROM nowhere"),
        raising(KeyError("a bug")),
        lambda: 42,
    ]
    first, missing, wrong, bug, last = await asyncio.gather(*map(run, units), return_exceptions=True)
    assert (first, last) == ("first", 42)
    assert isinstance(missing, NotFound)
    assert "nowhere" in str(wrong)
    assert isinstance(bug, KeyError)


@pytest.mark.on_both
async def test_reads_that_wait_for_a_group_share_one_transaction(store: Store) -> None:
    queue = Reads(store)
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        go_on.wait(PATIENCE)
        return "slow"

    first = [asyncio.ensure_future(queue.run(slow, PATIENCE)) for _ in range(store.parallel_reads)]
    await asyncio.to_thread(begun.wait, PATIENCE)
    threads = []
    for _ in range(8):  # each in a turn of the event loop
        threads.append(asyncio.ensure_future(queue.run(threading.get_ident, PATIENCE)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    go_on.set()
    assert await asyncio.gather(*first) == ["slow"] * store.parallel_reads
    assert len(set(await asyncio.gather(*threads))) <= store.parallel_reads


async def test_a_slow_read_does_not_hold_up_others(store: Store) -> None:
    queue = Reads(store)
    go_on = threading.Event()
    slow = [
        asyncio.ensure_future(queue.run(lambda: go_on.wait(PATIENCE), PATIENCE)) for _ in range(store.parallel_reads)
    ]
    await asyncio.sleep(0.01)
    try:
        if store.parallel_reads == 1:
            assert await asyncio.wait_for(queue.run(lambda: "quick", PATIENCE), PATIENCE / 2) == "quick"
    finally:
        go_on.set()
    assert await asyncio.gather(*slow) == [True] * store.parallel_reads


@pytest.mark.only_on("sqlite")
async def test_the_rest_of_a_group_does_not_wait_for_a_slow_read(store: Store, bounds: Bounds) -> None:
    bounds(reads_slice_seconds=-1.0)  # each group ends after its first read
    assert store.parallel_reads == 1
    queue = Reads(store)
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> bool:
        begun.set()
        return go_on.wait(PATIENCE)

    first = asyncio.ensure_future(queue.run(slow, PATIENCE))
    try:
        await asyncio.to_thread(begun.wait, PATIENCE)
        rest = asyncio.gather(*(queue.run(partial(int, number), PATIENCE) for number in range(3)))
        assert await asyncio.wait_for(rest, PATIENCE / 2) == [0, 1, 2]
        assert not first.done()
    finally:
        go_on.set()
    assert await first


async def test_a_group_that_takes_long_is_divided(store: Store, bounds: Bounds) -> None:
    bounds(reads_slice_seconds=0.0)
    queue = Reads(store)
    order: list[int] = []
    await asyncio.gather(*(queue.run(partial(order.append, number), PATIENCE) for number in range(20)))
    assert sorted(order) == list(range(20))


@pytest.mark.on_both
async def test_a_read_sees_what_was_committed_before_it(store: Store) -> None:
    queue = Reads(store)

    async def write_and_read(name: str) -> set[str]:
        unit: Any = lambda: Genre.insert(name=name, display_name=name).execute() and None  # noqa: E731 - short
        await asyncio.wrap_future(store.write(unit))
        return set(await queue.run(lambda: genres.find([name]), PATIENCE))

    names = [f"genre-{number}" for number in range(100)]
    assert await asyncio.gather(*map(write_and_read, names)) == [{name} for name in names]


async def test_a_read_that_nobody_waits_for_leaves_the_others_alone(store: Store) -> None:
    queue = Reads(store)
    left = asyncio.ensure_future(queue.run(lambda: "left", PATIENCE))
    kept = asyncio.ensure_future(queue.run(lambda: "kept", PATIENCE))
    await asyncio.sleep(0)
    left.cancel()
    assert await kept == "kept"


async def test_a_read_after_the_end_is_refused(store: Store) -> None:
    queue = Reads(store)
    store.close()
    with pytest.raises(Unavailable):
        await queue.run(lambda: None, PATIENCE)
