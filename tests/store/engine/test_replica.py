"""A read replica: what it may answer, and what the primary must answer instead."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from musicsvc.errors import NotFound
from musicsvc.store import opening
from musicsvc.store.engine.own_writes import NUMBERS
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Tag
from musicsvc.store.schema import schema
from tests.support import postgres
from tests.support.program import held, until

psycopg = pytest.importorskip("psycopg")

pytestmark = [pytest.mark.only_on("postgres"), pytest.mark.slow]
ANN, BOB = 7, 8


class Servers(NamedTuple):
    """A primary with a migrated database, and its standby."""

    primary: postgres.Server
    standby: postgres.Standby

    @property
    def url(self) -> str:
        return postgres.database_url(self.primary.folder, "music")

    @property
    def read_url(self) -> str:
        return postgres.database_url(self.standby.folder, "music")

    def on_primary(self, statement: str) -> None:
        _run(self.url, statement)

    def on_standby(self, statement: str) -> None:
        _run(self.read_url, statement)


def _run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture(scope="module")
def started() -> Iterator[Servers]:
    primary = postgres.Server()
    try:
        _run(postgres.database_url(primary.folder, "postgres"), "CREATE DATABASE music TEMPLATE template0")
        schema.upgrade(postgres.database_url(primary.folder, "music"))
        standby = postgres.Standby(primary)
        try:
            yield Servers(primary, standby)
        finally:
            standby.stop()
    finally:
        primary.stop()


@pytest.fixture
def servers(started: Servers) -> Iterator[Servers]:
    """The two servers, which the test leaves as they are, with an empty table of tags."""
    started.on_primary("DELETE FROM tag")
    yield started
    started.on_standby("SELECT pg_wal_replay_resume()")


@pytest.fixture
def store(servers: Servers) -> Iterator[Store]:
    """A store with its replica, which is read."""
    with opening.connect(servers.url, read_url=servers.read_url) as store:
        ready(store)
        yield store


def tags() -> list[str]:
    return [name for (name,) in fetch("SELECT name FROM tag ORDER BY name")]


def place() -> bool:
    return bool(fetch("SELECT pg_is_in_recovery()")[0][0])


def nothing() -> None:
    """Refuse nothing."""


def read(
    store: Store, unit: Callable[[], Any], account: int | None = None, check: Callable[[], object] = nothing
) -> Any:
    return store.read_figures(unit, check=check, account=account).result(20)


def ready(store: Store) -> None:
    """Wait until the replica answers."""
    until(lambda: read(store, place))


def write(store: Store, name: str, account: int | None = None) -> None:
    store.write(store.counted(lambda: Tag.insert(name=name).execute() and None, account)).result()


def seconds(work: Callable[[], Any]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def test_figures_are_read_from_the_replica_and_may_lag(servers: Servers, store: Store) -> None:
    write(store, "first")
    until(lambda: read(store, tags) == ["first"])
    servers.on_standby("SELECT pg_wal_replay_pause()")
    write(store, "second")

    assert read(store, lambda: (place(), tags())) == (True, ["first"])
    assert store.read(tags).result() == ["first", "second"]


def test_a_writer_sees_its_own_write_and_others_do_until_the_replica_has_it_too(servers: Servers, store: Store) -> None:
    servers.on_standby("SELECT pg_wal_replay_pause()")
    with opening.connect(servers.url, read_url=servers.read_url) as another_node:
        write(another_node, "mine", ANN)

    assert read(store, lambda: (place(), tags()), ANN) == (False, ["mine"])
    assert read(store, lambda: (place(), tags()), BOB) == (True, [])
    assert read(store, lambda: (place(), tags()), ANN + NUMBERS) == (False, ["mine"])  # shares the number of ANN
    servers.on_standby("SELECT pg_wal_replay_resume()")
    until(lambda: read(store, lambda: (place(), tags()), ANN) == (True, ["mine"]))


def test_a_replica_that_stands_still_is_not_read_for_longer_than_5_seconds(servers: Servers, store: Store) -> None:
    servers.on_standby("SELECT pg_wal_replay_pause()")
    write(store, "late")
    written = time.monotonic()
    until(lambda: not read(store, place), 10)

    assert time.monotonic() - written < 6
    assert read(store, tags) == ["late"]
    assert store.replica is not None
    assert store.replica.lag > 5
    servers.on_standby("SELECT pg_wal_replay_resume()")
    ready(store)
    assert store.replica.lag < 5


def test_an_idle_primary_does_not_make_the_replica_look_late(servers: Servers, store: Store) -> None:
    servers.on_primary("SELECT pg_switch_wal()")  # its position is then behind the head of a page
    idle = time.monotonic() + 7
    while time.monotonic() < idle:
        assert read(store, place)
        time.sleep(0.2)


def test_a_frozen_replica_holds_a_read_up_for_a_moment_only(servers: Servers, store: Store) -> None:
    with held(*servers.standby.processes):
        assert seconds(lambda: read(store, place)) < 4
        assert not read(store, place)
        assert seconds(lambda: read(store, place)) < 1
    ready(store)


def test_a_killed_replica_fails_no_read_and_is_read_again_when_it_is_back(servers: Servers, store: Store) -> None:
    os.kill(servers.standby.processes[0], signal.SIGKILL)
    for _ in range(50):
        assert not read(store, place)
    servers.standby.restart()
    ready(store)


def test_a_query_that_the_replica_cancels_is_repeated_on_the_primary(servers: Servers, store: Store) -> None:
    servers.on_standby("ALTER SYSTEM SET max_standby_streaming_delay = 0")
    servers.on_standby("SELECT pg_reload_conf()")
    write(store, "old")
    until(lambda: read(store, tags) == ["old"])
    places = []

    def slow() -> list[str]:
        places.append(place())
        if places == [True]:
            servers.on_primary("DELETE FROM tag")
            servers.on_primary("VACUUM tag")  # removes rows that this transaction may still read
            fetch("SELECT pg_sleep(20)")
        return tags()

    assert read(store, slow) == []
    assert places == [True, False]


def test_what_must_be_refused_is_checked_on_the_primary(servers: Servers, store: Store) -> None:
    def exists() -> None:
        if not tags():
            raise NotFound("There is no tag.")

    write(store, "only")
    until(lambda: read(store, tags) == ["only"])
    servers.on_standby("SELECT pg_wal_replay_pause()")
    store.write(lambda: Tag.delete().execute() and None).result()
    with pytest.raises(NotFound):
        read(store, tags, check=exists)
    write(store, "only")
    servers.on_standby("SELECT pg_wal_replay_resume()")


def test_what_the_replica_does_not_have_yet_is_looked_up_on_the_primary(servers: Servers, store: Store) -> None:
    def first() -> str:
        for name in tags():
            return name
        raise NotFound("There is no tag.")

    servers.on_standby("SELECT pg_wal_replay_pause()")
    write(store, "new")

    assert read(store, first) == "new"
