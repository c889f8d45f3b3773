"""A read replica: what it may answer, and what the primary must answer instead."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.errors import NotFound
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.doctor.database import check_replica
from musicsvc.store.editing import assignments, notices
from musicsvc.store.engine import own_writes
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.tasks.uploads import Place
from musicsvc.store.importing.tasks.work import Worker
from musicsvc.store.models import Artist, Tag
from tests.conftest import NOW
from tests.support import postgres
from tests.support.program import held, until

psycopg = pytest.importorskip("psycopg")
from tests.support.replication import PAUSE, RESUME, Servers, replicated, run  # noqa: E402 - imports the driver

pytestmark = [pytest.mark.only_on("postgres"), pytest.mark.slow]
ANN, BOB = 7, 8


@pytest.fixture(scope="module")
def started() -> Iterator[Servers]:
    with replicated() as servers:
        yield servers


@pytest.fixture
def servers(started: Servers) -> Iterator[Servers]:
    """The two servers, which the test leaves as they are, with an empty table of tags."""
    started.on_primary("DELETE FROM tag")
    yield started
    started.on_standby(RESUME)


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


def exists(url: str, table: str) -> bool:
    with psycopg.connect(url) as connection:
        return bool(connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone() == (True,))


def seconds(work: Callable[[], Any]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def test_figures_are_read_from_the_replica_and_may_lag(servers: Servers, store: Store) -> None:
    write(store, "first")
    until(lambda: read(store, tags) == ["first"])
    servers.on_standby(PAUSE)
    write(store, "second")

    assert read(store, lambda: (place(), tags())) == (True, ["first"])
    assert store.read(tags).result() == ["first", "second"]


def test_a_writer_sees_its_own_write_and_others_do_until_the_replica_has_it_too(servers: Servers, store: Store) -> None:
    servers.on_standby(PAUSE)
    with opening.connect(servers.url, read_url=servers.read_url) as another_node:
        write(another_node, "mine", ANN)

    assert read(store, lambda: (place(), tags()), ANN) == (False, ["mine"])
    assert read(store, lambda: (place(), tags()), BOB) == (True, [])
    shared = ANN + own_writes.NUMBERS  # with the number of ANN
    assert read(store, lambda: (place(), tags()), shared) == (False, ["mine"])
    servers.on_standby(RESUME)
    until(lambda: read(store, lambda: (place(), tags()), ANN) == (True, ["mine"]))


def test_a_replica_that_stands_still_is_not_read_for_longer_than_5_seconds(servers: Servers, store: Store) -> None:
    servers.on_standby(PAUSE)
    write(store, "late")
    written = time.monotonic()
    until(lambda: not read(store, place), 10)

    assert time.monotonic() - written < 6
    assert read(store, tags) == ["late"]
    assert store.replica is not None
    assert store.replica.lag > 5
    servers.on_standby(RESUME)
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
        read(store, place)
    until(lambda: not read(store, place), 5)
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
    servers.on_standby(PAUSE)
    store.write(lambda: Tag.delete().execute() and None).result()
    with pytest.raises(NotFound):
        read(store, tags, check=exists)
    write(store, "only")
    servers.on_standby(RESUME)


@pytest.mark.parametrize("lost", ["artist", "credit"])
def test_who_loses_an_artist_or_a_credit_reads_figures_on_the_primary(
    servers: Servers, store: Store, lost: str
) -> None:
    def take() -> int:
        former, new = (users.create(f"{name}@{lost}.test", now=NOW) for name in ("former", "new"))
        artist = Artist.create(name="Rags", manager=former.id, created_at=NOW)
        if lost == "artist":
            assignments.assign(artist.id, new, now=NOW)  # by the operator, whose commands know no replica
        else:
            notices.log_uncredited("track", "Rags", [artist.id], account=new.id, now=NOW, actor="api")
        return int(former.id)

    servers.on_standby(PAUSE)
    former = store.write(take).result()
    assert not read(store, place, former)
    servers.on_standby(RESUME)
    until(lambda: read(store, place, former))


def test_what_the_replica_does_not_have_yet_is_looked_up_on_the_primary(servers: Servers, store: Store) -> None:
    def first() -> str:
        for name in tags():
            return name
        raise NotFound("There is no tag.")

    servers.on_standby(PAUSE)
    write(store, "new")

    assert read(store, first) == "new"


def test_a_standby_is_found_among_several_hosts(servers: Servers) -> None:
    folders = f"{servers.primary.folder},{servers.standby.folder}"
    read_url = f"postgresql:///music?host={folders}&user={postgres.USER}"
    with opening.connect(servers.url, read_url=read_url) as store:
        ready(store)
    assert check_replica(servers.url, read_url).level == "ok"


def test_another_database_the_primary_and_one_that_is_not_there_are_refused(servers: Servers) -> None:
    run(postgres.database_url(servers.primary.folder, "postgres"), "CREATE DATABASE other TEMPLATE template0")
    other = postgres.database_url(servers.standby.folder, "other")
    missing = postgres.database_url(servers.standby.folder, "missing")
    until(lambda: "is not a replica of" in check_replica(servers.url, other).finding)
    assert 'database "missing" does not exist' in check_replica(servers.url, missing).finding
    assert "not in hot standby mode" in check_replica(servers.url, servers.url).finding
    for read_url in (other, missing, servers.url):
        with opening.connect(servers.url, read_url=read_url) as wrong, pytest.raises(AssertionError, match="in vain"):
            until(lambda wrong=wrong: read(wrong, place), 3)  # type: ignore[misc]  # bound in the loop


def test_a_replica_of_an_older_schema_is_not_read_until_it_has_the_upgrade(servers: Servers) -> None:
    name, oldest = "0001_baseline", "0.1.0"
    servers.on_primary(f"DELETE FROM schema_migration WHERE name = '{name}'")
    servers.on_primary("CREATE TABLE replayed ()")
    until(lambda: exists(servers.read_url, "replayed"))
    servers.on_standby(PAUSE)
    servers.on_primary("DROP TABLE replayed")
    servers.on_primary(f"INSERT INTO schema_migration VALUES ('{name}', '{oldest}')")
    with opening.connect(servers.url, read_url=servers.read_url) as store:
        assert not read(store, place)
        found = check_replica(servers.url, servers.read_url)
        assert (found.level, "written before version 0.1.0" in found.finding) == ("warning", True)
        servers.on_standby(RESUME)
        ready(store)


def test_doctor_says_that_a_replica_is_behind(servers: Servers, store: Store) -> None:
    assert check_replica(servers.url, servers.read_url).level == "ok"
    servers.on_standby(PAUSE)
    write(store, "late")
    found = check_replica(servers.url, servers.read_url)

    assert (found.level, found.finding.partition(" is ")[2]) == ("warning", "more than 5 seconds behind.")


def test_a_standby_that_became_a_primary_is_not_read() -> None:
    with replicated() as servers, opening.connect(servers.url, read_url=servers.read_url) as store:
        ready(store)
        servers.on_standby("SELECT pg_promote()")
        servers.on_standby("INSERT INTO tag (name) VALUES ('diverged')")

        assert read(store, tags) == []
        assert "not in hot standby mode" in check_replica(servers.url, servers.read_url).finding


def test_an_import_that_a_page_requested_counts_as_a_write_of_its_account(store: Store, tmp_path: Path) -> None:
    clock, upload = MovableClock(NOW, speed=0), Place.build(tmp_path, store.url)
    account = store.write(lambda: users.create("importer@label.test", now=NOW).id).result()
    store.write(lambda: queue.create(account, "catalog", "songs.csv", "songs", upload.name, NOW)).result()
    before = store.read(partial(own_writes.count, account)).result()

    assert Worker(store, upload, clock, lambda: False).work()
    assert store.read(partial(own_writes.count, account)).result() == before + 1
