"""Units that an event loop hands to the store: the results, the groups, and callers that are gone."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import peewee
import pytest

from musicsvc.errors import NotFound, Unavailable
from musicsvc.store import opening
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Tag

only_on_sqlite = pytest.mark.only_on("sqlite")


def _tag(name: str) -> Callable[[], str]:
    """Return a unit that adds a tag and returns its name."""

    def unit() -> str:
        Tag.create(name=name)
        return name

    return unit


def _tags() -> set[str]:
    return {tag.name for tag in Tag.select()}


def _missing() -> None:
    raise NotFound("There is no such tag.")


def _busy(store: Store) -> threading.Event:
    """Keep the writer busy until the returned event is set."""
    started, release = threading.Event(), threading.Event()

    def unit() -> None:
        started.set()
        release.wait(30)

    store.write(unit)
    assert started.wait(30)
    return release


async def _all(store: Store, *units: Callable[[], Any]) -> list[Any]:
    return await asyncio.gather(*(store.write_on_loop(unit) for unit in units), return_exceptions=True)


class Loop(asyncio.SelectorEventLoop):
    """An event loop that counts how often other threads wake it."""

    woken = 0

    def call_soon_threadsafe(self, *arguments: Any, **options: Any) -> asyncio.Handle:  # type: ignore[override]
        self.woken += 1
        return super().call_soon_threadsafe(*arguments, **options)


def test_each_caller_gets_the_result_or_the_error_of_its_unit(store: Store) -> None:
    store.write(_tag("old")).result()

    results = asyncio.run(_all(store, _tag("a"), _missing, _tag("b"), _tag("old"), _tag("c")))

    assert results[0::2] == ["a", "b", "c"]
    assert [type(result) for result in results[1::2]] == [NotFound, peewee.IntegrityError]
    assert store.read(_tags).result() == {"old", "a", "b", "c"}


def test_counters_are_written_from_a_loop_too(store: Store) -> None:
    async def write() -> str:
        return await store.write_on_loop(_tag("a"), counters_only=True)

    versions = store.table_versions()
    assert asyncio.run(write()) == "a"
    changed = {table for table, _ in store.table_versions().items() - versions.items()}
    assert changed == ({"counters:tag"} if store.url.startswith("sqlite:") else set())


@only_on_sqlite
def test_the_units_of_one_turn_are_committed_together_and_wake_the_loop_once(store: Store) -> None:
    before = replace(store.workload)
    began = time.monotonic()
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(_all(store, *(_tag(str(number)) for number in range(50))))
        loop = runner.get_loop()

        assert isinstance(loop, Loop)
        assert loop.woken == 1
    elapsed = time.monotonic() - began
    after = store.workload
    assert (after.commits - before.commits, after.units - before.units) == (1, 50)
    assert before.seconds < after.seconds <= before.seconds + elapsed


@only_on_sqlite
def test_loops_and_threads_share_a_group(store: Store) -> None:
    release = _busy(store)
    commits = store.workload.commits

    async def both() -> list[str]:
        on_loop = store.write_on_loop(_tag("a"))
        in_thread = store.write(_tag("b"))
        await asyncio.sleep(0)
        release.set()
        return [await on_loop, await asyncio.wrap_future(in_thread)]

    assert asyncio.run(both()) == ["a", "b"]
    assert store.workload.commits == commits + 2


@only_on_sqlite
def test_a_unit_whose_caller_is_gone_before_it_begins_does_not_run(store: Store) -> None:
    async def leave() -> None:
        gone, present = store.write_on_loop(_tag("gone")), store.write_on_loop(_tag("present"))
        gone.cancel()
        await present

    asyncio.run(leave())

    assert store.read(_tags).result() == {"present"}


@only_on_sqlite
def test_a_unit_whose_caller_is_gone_while_it_runs_is_committed(store: Store) -> None:
    async def leave() -> str:
        running, left = threading.Event(), threading.Event()

        def unit() -> None:
            running.set()
            left.wait(30)
            Tag.create(name="gone")

        future, present = store.write_on_loop(unit), store.write_on_loop(_tag("present"))
        await asyncio.to_thread(running.wait, 10)
        future.cancel()
        left.set()
        return await asyncio.wait_for(present, 30)

    assert asyncio.run(leave()) == "present"

    assert store.read(_tags).result() == {"gone", "present"}


@only_on_sqlite
def test_a_closed_loop_does_not_disturb_the_writer(store: Store) -> None:
    release = _busy(store)

    async def leave() -> None:
        store.write_on_loop(_tag("unheard"))
        await asyncio.sleep(0)

    async def stay() -> str:
        future = store.write_on_loop(_tag("heard"))
        await asyncio.sleep(0)
        release.set()
        return await asyncio.wait_for(future, 30)

    asyncio.run(leave())

    assert asyncio.run(stay()) == "heard"
    assert store.read(_tags).result() == {"unheard", "heard"}


def test_a_closed_store_is_unavailable(store_url: str) -> None:
    store = opening.connect(store_url)
    store.close()

    async def write() -> None:
        await store.write_on_loop(_tag("late"))

    with pytest.raises(Unavailable, match="shutting down"):
        asyncio.run(write())
