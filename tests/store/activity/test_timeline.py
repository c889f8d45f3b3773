"""Calls and events in one order, and those that are written while somebody follows them."""

from typing import Any

import pytest

from musicsvc.store.activity import calls
from musicsvc.store.activity.calls import SLICE, Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.activity.timeline import Timeline
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Activity, SecurityEvent
from musicsvc.store.security import security_events


@pytest.fixture
def timeline(store: Store, log: Log) -> Timeline:
    return Timeline(store, log, calls.ALL, security_events.ALL)


def call(log: Log, *times: int) -> None:
    entries = [
        Entry(at, f"r{at}", 1, 2, "", "GET", None, None, 200, None, 1.0, 80, limits_apply=True, private=False)
        for at in times
    ]
    log.write(lambda: calls.add(entries)).result()


def event(store: Store, at: int) -> None:
    store.write(lambda: security_events.add("account.created", account_id=1, now=at, actor="cli")).result()


def taken_out(place: Store | Log, table: Any, at: int) -> Any:
    """Delete the row with this time, and return it."""

    def unit() -> Any:
        row = table.select().where(table.at == at).dicts().get()
        table.delete().where(table.at == at).execute()
        return row

    return place.write(unit).result()


def times(found: list[Any]) -> list[int]:
    return [each.at for each in found]


def test_rows_written_later_come_once_and_in_the_order_of_their_times(
    store: Store, log: Log, timeline: Timeline
) -> None:
    event(store, 2)
    call(log, 1, 3)
    assert times(timeline.newest(2)) == [2, 3]
    assert timeline.later() == []
    for first in (10, 20):
        event(store, first + 1)
        call(log, first + 2, first)
        assert times(timeline.later()) == [first, first + 1, first + 2]
        assert timeline.later() == []


def test_a_row_that_is_committed_after_rows_with_higher_ids_comes_too(
    store: Store, log: Log, timeline: Timeline
) -> None:
    """As if its transaction had taken its id first and been committed last."""
    for at in (1, 2):
        event(store, at)
        call(log, at)
    rows = [(place, table, taken_out(place, table, at=1)) for place, table in ((store, SecurityEvent), (log, Activity))]
    assert times(timeline.newest(9)) == [2, 2]
    for place, table, row in rows:
        place.write(table.insert(row).execute).result()
    assert times(timeline.later()) == [1, 1]
    assert timeline.later() == []


def test_more_rows_than_one_transaction_reads_come_completely(log: Log, timeline: Timeline) -> None:
    call(log, 1)
    assert times(timeline.newest(9)) == [1]
    written = range(2, 2 * SLICE + 3)
    call(log, *written)
    found: list[int] = []
    while more := timeline.later():
        found += times(more)
    assert found == [*written]
