"""Anonymous calls in the activity log: 600 per minute and address, the rest as counts."""

import asyncio
import time
import tracemalloc
from collections import Counter
from functools import partial
from typing import Any

import pytest

from musicsvc.clock import DAY, MINUTE, SECOND, MovableClock
from musicsvc.config import Limits, Server, Settings
from musicsvc.server.call import Call
from musicsvc.server.jobs.activity_writer import FULL_CALLS, ActivityWriter, AnonymousCalls
from musicsvc.store.activity import calls
from musicsvc.store.activity import calls as activity_calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.activity.sums import OTHERS
from musicsvc.store.engine.store import Store
from tests.rights.world import OWNER, World
from tests.support.bounds import Bounds
from tests.support.prometheus import scraped, total
from tests.support.raw_connection import connected, request
from tests.support.serving import person, running

HTTPS = "X-Forwarded-Proto: https"
PROXIED = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
FEW = 5
COUNTED = "musicsvc_activity_counted_total"


def call(clock: MovableClock, address: str = "192.0.2.1", status: int = 401, token_id: int | None = None) -> Call:
    return Call(clock.now(), 0.0, "id", "GET", address, token_id=token_id, status=status, size=10, milliseconds=2.5)


def counts(entries: list[Entry]) -> Counter[tuple[str, int]]:
    """Return the numbers of calls by address and status."""
    assert all(entry.is_count and entry.method == "" and entry.route is None for entry in entries)
    return Counter({(entry.address, entry.status): entry.calls for entry in entries})


def logged(store: Store, **wanted: Any) -> list[Entry]:
    """Return the log as another process reads it."""
    with activity_log.build(store.url) as log:
        log.prepare()
        return log.read(lambda: activity_calls.find(activity_calls.Filter(**wanted), limit=999)).result()


def test_600_calls_a_minute_are_logged_in_full_and_the_rest_counted_by_status(clock: MovableClock) -> None:
    calls = AnonymousCalls(clock, workers=1)
    statuses = [401] * FULL_CALLS + [401] * 30 + [404] * 7
    assert [calls.count(call(clock, status=status)) for status in statuses] == [False] * FULL_CALLS + [True] * 37
    assert calls.finished() == []
    clock.advance(MINUTE)
    first, second = calls.finished()
    assert counts([first, second]) == {("192.0.2.1", 401): 30, ("192.0.2.1", 404): 7}
    assert (first.at, first.size, first.milliseconds) == (clock.now() - MINUTE, 300, 75.0)
    assert calls.finished() == []
    assert not calls.count(call(clock))
    assert calls.counted == 37


def test_the_minute_is_that_of_the_clock_and_a_new_one_begins_with_600_more(clock: MovableClock) -> None:
    calls = AnonymousCalls(clock, workers=300)  # 2 each
    clock.advance(MINUTE - 2 * SECOND)
    assert [calls.count(call(clock)) for _ in range(2)] == [False, False]
    clock.advance(SECOND)
    assert calls.count(call(clock))
    clock.advance(SECOND)
    assert [calls.count(call(clock)) for _ in range(4)] == [False, False, True, True]
    assert [entry.calls for entry in calls.finished()] == [1]
    clock.advance(-MINUTE)  # set back
    assert [calls.count(call(clock)) for _ in range(3)] == [False, False, True]
    assert [entry.calls for entry in calls.finished(last=True)] == [2, 1]


@pytest.mark.parametrize(
    ("addresses", "networks"),
    [
        (["192.0.2.1", "192.0.2.2"], ["192.0.2.1", "192.0.2.2"]),
        (["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"], ["2001:db8::/64", "2001:db8:0:1::/64"]),
        (["", "nonsense"], ["", "nonsense"]),
    ],
)
def test_an_ipv6_address_counts_with_its_network(
    clock: MovableClock, addresses: list[str], networks: list[str]
) -> None:
    calls = AnonymousCalls(clock, workers=600)
    for _ in range(3):
        for address in addresses:
            calls.count(call(clock, address))
    found = counts(calls.finished(last=True))
    assert list(found) == [(network, 401) for network in networks]
    assert found.total() == 3 * len(addresses) - len(networks)


def test_calls_with_a_token_are_never_counted(clock: MovableClock) -> None:
    calls = AnonymousCalls(clock, workers=600)
    assert not any(calls.count(call(clock, token_id=7)) for _ in range(10))
    assert not calls.count(call(clock))


@pytest.mark.slow
def test_many_addresses_are_counted_together_and_no_call_is_lost(clock: MovableClock, bounds: Bounds) -> None:
    bounds(most_addresses=1_000)
    calls = AnonymousCalls(clock, workers=300)
    tracemalloc.start()
    for _ in range(2):
        for number in range(20_000):
            calls.count(call(clock, f"10.0.{number // 250}.{number % 250}"))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 2**20
    (entry,) = calls.finished(last=True)
    assert (entry.address, entry.calls) == (OTHERS, 2 * 19_000 - 2)
    assert calls.counted == entry.calls


@pytest.mark.on_both
async def test_the_log_and_the_metrics_of_a_server_add_up(store: Store, clock: MovableClock, bounds: Bounds) -> None:
    bounds(full_calls=2 * FEW)
    _, token = person(store, clock, "ann@label.test")
    settings = Settings(server=Server(workers=2))  # which this one is of
    async with running(store, clock, settings) as anonymous:
        async with connected(anonymous.root) as wire:
            for address in ("2001:db8::7", "2001:db8::8", "192.0.2.1"):
                for path in ("/api/v1/users/me", "/nothing", "/healthz"):
                    for _ in range(4):
                        await wire.send(request("GET", path, f"X-Forwarded-For: {address}", HTTPS))
                        await wire.answer()
        for _ in range(FEW * 2):
            await anonymous.holding(token).get("albums", headers=PROXIED)
        figures = await scraped(anonymous)
        assert total(figures, COUNTED) == 14
        assert total(figures, "musicsvc_requests_total") == 36 + FEW * 2

    whole = [entry for entry in logged(store) if not entry.is_count]
    assert Counter(entry.token_id is None for entry in whole) == {True: 2 * FEW, False: 2 * FEW}
    counted = [entry for entry in logged(store) if entry.is_count]
    expected = {("2001:db8::/64", 401): 4, ("2001:db8::/64", 404): 7, ("192.0.2.1", 404): 3}
    assert counts(counted) == expected
    assert [entry for entry in logged(store, address="2001:db8::9") if entry.is_count] == counted[:2]
    assert [entry for entry in logged(store, address="192.0.2.1", statuses=(404, 404)) if entry.is_count] == counted[2:]


@pytest.mark.parametrize("who", ["without access", "suspended"])
async def test_a_token_without_access_is_logged_and_limited_like_none(
    store: Store, clock: MovableClock, bounds: Bounds, who: str
) -> None:
    bounds(full_calls=6)
    world = World(store, clock, [who, OWNER])
    limits = Limits.model_validate({"local": True, "address": "4/hour"})
    async with running(store, clock, Settings(limits=limits)) as anonymous:
        client = anonymous.holding(world.tokens[who])
        answers = [await client.get(("albums", "users/me")[number % 2]) for number in range(20)]
        assert [answer.status for answer in answers] == [403] * 4 + [429] * 16
        assert (await anonymous.holding(world.tokens[OWNER]).get("albums")).status == 200
    rows = logged(store)
    whole = [(entry.account_id, entry.token_id is None, entry.status) for entry in rows if not entry.is_count]
    refused = {(world.ids[who], True, 403): 4, (world.ids[who], True, 429): 2}
    assert Counter(whole) == refused | {(world.ids[OWNER], False, 200): 1}
    assert counts([entry for entry in rows if entry.is_count]) == {("127.0.0.1", 429): 14}


async def test_counts_are_written_once_the_minute_is_over(store: Store, clock: MovableClock, bounds: Bounds) -> None:
    bounds(full_calls=1, write_seconds=0.02)
    async with running(store, clock) as anonymous:
        for _ in range(4):
            await anonymous.get("genres")
        clock.advance(MINUTE)
        async with asyncio.timeout(30):
            while len(await asyncio.to_thread(logged, store)) < 2:  # noqa: ASYNC110 - as another process looks
                await asyncio.sleep(0.02)
    assert sorted((entry.calls, entry.is_count) for entry in logged(store)) == [(1, False), (3, True)]


# Deleting old calls from the activity log leaves room for new ones.

OLD = 2 * calls.PRUNED + 1  # more than two steps delete
LONG = 60.0


async def test_deleting_pauses_after_each_step_so_that_others_can_write_and_a_stop_ends_the_pause(
    store: Store, clock: MovableClock, bounds: Bounds
) -> None:
    bounds(first_pruning_seconds=0.0, pruning_pause_seconds=LONG)
    with activity_log.build(store.url) as log, activity_log.build(store.url) as other:
        log.prepare()
        old = [entry(clock.now() - 40 * DAY, f"old-{number}") for number in range(OLD)]
        log.write(partial(calls.add, old)).result()
        writer = ActivityWriter(log, store, clock, keep_days=30)
        writer.start()
        async with asyncio.timeout(30):
            while await asyncio.to_thread(count, other) == OLD:  # noqa: ASYNC110 - another thread, no event
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        assert await asyncio.to_thread(count, other) == OLD - calls.PRUNED

        began = time.monotonic()
        other.write(partial(calls.add, [entry(clock.now(), "of another process")])).result()
        writer(Call(clock.now(), 0.0, "of this process", "GET", "192.0.2.1", status=200))
        await writer.stop()
        assert time.monotonic() - began < LONG / 10
        new = other.read(lambda: calls.find(calls.Filter(since=clock.now()), limit=9)).result()
        assert {each.request_id for each in new} == {"of another process", "of this process"}


def count(log: Log) -> int:
    log.prepare()
    return len(log.read(lambda: calls.find(calls.Filter(), limit=2 * OLD)).result())


def entry(at: int, request_id: str) -> calls.Entry:
    """Return a call by nobody."""
    return calls.Entry(
        at=at,
        request_id=request_id,
        account_id=None,
        token_id=None,
        address="192.0.2.1",
        method="GET",
        route=None,
        resource=None,
        status=404,
        retry_after=None,
        milliseconds=1.0,
        size=0,
        limits_apply=False,
        private=False,
    )
