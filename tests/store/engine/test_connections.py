"""The budget of connections to PostgreSQL: who gets one, who waits, and what happens if the server has no more."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from musicsvc.errors import Unavailable
from musicsvc.store import opening
from musicsvc.store.catalog import changes
from musicsvc.store.engine.sql import fetch, stream_rows
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Tag
from musicsvc.store.schema import history, schema
from tests.support.bounds import Bounds
from tests.support.pgbouncer import pooled
from tests.support.postgres import limited_role
from tests.support.program import PATIENCE, until

psycopg = pytest.importorskip("psycopg")
if psycopg:
    from musicsvc.store.engine.postgres import connections
    from musicsvc.store.engine.postgres.store import PostgresStore
pytestmark = pytest.mark.only_on("postgres")

SLEEP = "SELECT pg_sleep(0.05)"
OPEN = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@pytest.fixture
def small(store_url: str, tmp_path: Path) -> Iterator[Store]:
    """A store with four connections."""
    with PostgresStore(store_url, tmp_path, connections=4) as store:
        yield store


@contextmanager
def held(number: int, use: Callable[..., Future[None]]) -> Iterator[None]:
    """Let this number of units of work hold a connection in the `with` block."""
    begun, done = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        fetch("SELECT 1")
        begun.release()
        assert done.wait(PATIENCE)

    units = [use(hold) for _ in range(number)]
    try:
        for _ in units:
            assert begun.acquire(timeout=PATIENCE)
        yield
    finally:
        done.set()
        for unit in units:
            unit.result(PATIENCE)


def refused(url: str) -> list[str]:
    """Return the lines in which the server noted that the role of this URL has too many connections."""
    values = parse_qs(urlsplit(url).query)
    lines = (Path(values["host"][0]) / "log").read_text("utf-8").splitlines()
    return [line for line in lines if f'too many connections for role "{values["user"][0]}"' in line]


def waiting_threads(store: Store) -> int:
    """Return the number of threads that wait for a connection."""
    assert isinstance(store, PostgresStore)
    return sum(map(len, store._database.connections._waiting.values()))


def test_a_connection_that_is_given_back_after_the_end_is_closed(store_url: str) -> None:
    shared = connections.Connections(lambda: psycopg.connect(store_url), 4)
    first, second = (shared.take(urgent=False) for _ in range(2))
    shared.give_back(first, urgent=False)
    shared.close()
    assert (first.closed, second.closed) == (True, False)
    shared.give_back(second, urgent=False)
    assert second.closed


def test_units_of_work_share_the_connections_of_the_budget(small: Store, admin: Any) -> None:
    assert small.connections is not None
    with held(3, small.read):
        further = [small.read(lambda: fetch(SLEEP)) for _ in range(5)]
        further += [small.write(lambda: fetch(SLEEP)) for _ in range(7)]
        until(lambda: waiting_threads(small) == 3 + 4)  # those of readers and writers
        assert admin.execute(OPEN).fetchone() == (3,)  # the fourth is reserved for urgent work
        assert (small.connections.budget, small.connections.open, small.connections.in_use) == (4, 3, 3)
    for each in further:
        each.result(PATIENCE)

    assert small.connections.waits >= 7
    assert small.connections.wait_seconds > 0


def test_a_revocation_and_a_health_check_wait_for_no_other_work(small: Store) -> None:
    with held(3, small.read):
        waiting = small.write(lambda: Tag.create(name="late") and None)
        small.write(lambda: Tag.create(name="calm") and None, urgent=True).result(PATIENCE)
        assert small.probe(lambda: 7, within=PATIENCE).result(PATIENCE) == 7
        assert not waiting.done()
    waiting.result(PATIENCE)


def test_a_connection_that_gets_free_goes_to_urgent_work_first(small: Store) -> None:
    order: list[str] = []

    def note(name: str) -> None:
        order.append(name)
        fetch(SLEEP)

    def urgently(unit: Callable[[], None]) -> Future[None]:
        return small.write(unit, urgent=True)

    with held(2, small.read), held(1, urgently):
        with held(1, urgently):
            plain = small.write(lambda: note("plain"))
            until(lambda: waiting_threads(small) == 1)
            urgent = urgently(lambda: note("urgent"))
            until(lambda: waiting_threads(small) == 2)
        for each in (plain, urgent):
            each.result(PATIENCE)

    assert order == ["urgent", "plain"]


def test_a_unit_of_work_fails_in_time_if_no_connection_gets_free(small: Store) -> None:
    with held(3, small.read):
        began = time.monotonic()
        with pytest.raises(Unavailable) as failure:
            small.write(lambda: None, within=0.5).result(PATIENCE)
        assert time.monotonic() - began < connections.PATIENCE_SECONDS / 2

    assert "database.connections" in failure.value.here


def test_unused_connections_are_closed(small: Store, admin: Any, bounds: Bounds) -> None:
    with held(3, small.read):
        pass
    assert admin.execute(OPEN).fetchone() == (3,)
    bounds(idle_seconds=0.0)
    small.read(lambda: None).result()

    until(lambda: admin.execute(OPEN).fetchone() == (1,))


def test_a_process_goes_on_with_the_connections_that_the_server_accepts(store_url: str, tmp_path: Path) -> None:
    with limited_role(store_url, 2) as limited, PostgresStore(limited, tmp_path, connections=9) as store:
        reads = [store.read(lambda: fetch(SLEEP)) for _ in range(17)]
        writes = [store.write(lambda: fetch(SLEEP)) for _ in range(9)]
        for each in (*reads, *writes):
            each.result(PATIENCE)
        with held(1, store.read):
            began = time.monotonic()
            store.write(lambda: Tag.create(name="calm") and None, urgent=True).result(PATIENCE)
            assert time.monotonic() - began < connections.PATIENCE_SECONDS / 2
        assert store.connections is not None
        assert store.connections.open <= 2
    assert len(refused(limited)) < 30  # the server is not asked again and again


def test_a_process_without_any_connection_waits_for_one(
    store_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with limited_role(store_url, 1) as limited, PostgresStore(limited, tmp_path, connections=9) as store:
        with psycopg.connect(limited):
            waiting = store.read(lambda: 7)
            until(lambda: "waiting up to 10 s for a free connection" in caplog.text)
            assert not waiting.done()
        assert waiting.result(PATIENCE) == 7


def test_lost_connections_are_not_used_again(store: Store, admin: Any) -> None:
    with held(6, store.read):  # more than a unit of work has attempts
        pass
    admin.execute(f"SELECT pg_terminate_backend(pid, 5000) {OPEN.partition('count(*)')[2]}")

    assert [store.read(lambda: 7).result() for _ in range(3)] == [7] * 3
    assert admin.execute(OPEN).fetchone() == (1,)


# The store behind pgbouncer in transaction mode.

SETTINGS = "SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"


@pytest.fixture
def pooled_url(new_database: Callable[..., str], tmp_path: Path) -> Iterator[str]:
    """The address of an empty database through pgbouncer, which has two connections for all its clients."""
    with pooled(new_database(migrated=False), tmp_path / "pgbouncer", default_pool_size=2) as url:
        yield url


def test_a_database_is_created_and_used_through_a_pooler(pooled_url: str) -> None:
    assert schema.upgrade(pooled_url) == history.available()

    with opening.connect(pooled_url) as store:
        for number in range(20):
            store.write(partial(Tag.create, name=f"tag {number}")).result()
        tags = [store.read(lambda: list(stream_rows("SELECT name FROM tag ORDER BY id"))) for _ in range(20)]
        assert [len(each.result()) for each in tags] == [20] * 20


def test_changes_of_the_catalog_are_numbered_through_a_pooler(pooled_url: str) -> None:
    schema.upgrade(pooled_url)

    with opening.connect(pooled_url) as store:
        begin = store.read(partial(changes.since, None)).result().cursor
        for number in range(9):
            store.write(partial(Artist.create, name=f"artist {number}", created_at=1)).result()
        rows = store.read(partial(changes.since, begin)).result().rows
    assert [(row.id, row.change) for row in rows] == [(number, "created") for number in range(1, 10)]


def test_every_transaction_has_its_timeouts_through_a_pooler(pooled_url: str) -> None:
    schema.upgrade(pooled_url)

    with opening.connect(pooled_url) as store:
        for use in (store.read, store.write):
            assert use(lambda: fetch(SETTINGS)).result() == [("250ms", "1min")]
    with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as other:
        assert other.execute(SETTINGS).fetchall() == [("0", "0")]
