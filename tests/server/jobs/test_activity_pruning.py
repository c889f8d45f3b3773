"""Deleting old calls from the activity log leaves room for new ones."""

import asyncio
import time
from functools import partial

from musicsvc.clock import DAY, MovableClock
from musicsvc.server.call import Call
from musicsvc.server.jobs.activity_writer import ActivityWriter
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.log import Log
from musicsvc.store.engine.store import Store
from tests.support.bounds import Bounds

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
