"""Rules for units of work on both databases."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import apsw
import peewee
import pytest

from musicsvc.errors import NotFound, Unavailable
from musicsvc.store import opening
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import savepoint
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Tag

WRITERS = 4  # the number of concurrent units on both stores


def _genre(name: str) -> Callable[[], None]:
    """Return a unit that adds a genre."""
    return lambda: Genre.insert(name=name, display_name=name).execute() and None


def _names() -> list[str]:
    return [genre.name for genre in Genre.select().order_by(Genre.id)]


def _tags() -> list[str]:
    return [tag.name for tag in Tag.select().order_by(Tag.id)]


def test_a_failing_unit_is_rolled_back_and_raises_its_exception(store: Store) -> None:
    failure = NotFound("There is no such track.")

    def unit() -> None:
        Tag.create(name="calm")
        raise failure

    assert store.write(unit).exception() is failure
    assert store.read(_tags).result() == []


def test_a_violated_constraint_is_an_integrity_error_with_and_without_peewee(store: Store) -> None:
    store.write(_genre("folk")).result()
    twice = "INSERT INTO tag (name) VALUES ('calm'), ('calm')"

    for unit in (_genre("folk"), lambda: sql.current().connection().cursor().execute(twice)):
        with pytest.raises(peewee.IntegrityError):
            store.write(unit).result()
    assert (store.read(_names).result(), store.read(_tags).result()) == (["folk"], [])


@pytest.mark.only_on("sqlite")
def test_statements_are_not_prepared_again_for_other_parameters(store: Store) -> None:
    def unit() -> int:
        stable: int = sql.current().connection().config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1)
        return stable

    assert [store.read(unit).result(), store.write(unit).result()] == [1, 1]


@pytest.mark.only_on("sqlite")
def test_a_writer_keeps_a_prepared_statement_while_it_runs_hundreds_of_others(store: Store) -> None:
    def unit() -> int:
        for number in range(300):
            sql.fetch(f"SELECT {number}")
        before = sql.current().connection().cache_stats()["misses"]
        sql.fetch("SELECT 0")
        missed: int = sql.current().connection().cache_stats()["misses"] - before
        return missed

    assert store.write(unit).result() == 0


@pytest.mark.only_on("sqlite")
def test_a_value_of_an_unsupported_type_is_refused_and_not_shown(store: Store) -> None:
    def unit() -> None:
        sql.current().execute_sql("INSERT INTO tag (name) VALUES (?)", (Path("calm"),))

    with pytest.raises(TypeError, match="PosixPath cannot be stored in the database"):
        store.write(unit).result()


def test_a_savepoint_rolls_back_only_its_own_statements(store: Store) -> None:
    def both(*names: str) -> None:
        with savepoint():
            for name in names:
                Tag.create(name=name)

    def unit() -> None:
        Tag.create(name="calm")
        with pytest.raises(peewee.IntegrityError):
            both("loud", "calm")
        Tag.create(name="slow")

    store.write(unit).result()

    assert store.read(_tags).result() == ["calm", "slow"]


def test_transactions_of_peewee_are_savepoints_in_a_unit(store: Store) -> None:
    def unit() -> list[bool]:
        with sql.current().atomic():
            return [Tag.get_or_create(name="calm")[1] for _ in range(2)]

    assert store.write(unit).result() == [True, False]
    assert store.read(_tags).result() == ["calm"]


def test_a_reading_unit_sees_one_snapshot(store: Store) -> None:
    first, written = threading.Event(), threading.Event()

    def unit() -> tuple[list[str], list[str]]:
        before = _names()
        first.set()
        written.wait(30)
        return before, _names()

    reading = store.read(unit)
    assert first.wait(30)
    store.write(_genre("folk")).result()
    written.set()

    assert reading.result() == ([], [])
    assert store.read(_names).result() == ["folk"]


def test_a_write_in_a_reading_unit_raises_a_programming_error(store: Store) -> None:
    with pytest.raises(peewee.PeeweeException):
        store.read(_genre("folk")).result()

    store.write(_genre("rock")).result()
    assert store.read(_names).result() == ["rock"]


def test_a_unit_must_not_return_a_query(store: Store) -> None:
    with pytest.raises(TypeError, match="not a query"):
        store.read(Genre.select).result()


def test_models_cannot_be_used_outside_a_unit(store: Store) -> None:
    store.write(_genre("folk")).result()

    with pytest.raises(AttributeError, match="uninitialized Proxy"):
        list(Genre.select())


def test_a_cancelled_unit_is_not_run(store: Store) -> None:
    release = threading.Event()
    busy = [store.write(lambda: release.wait(30)) for _ in range(WRITERS)]

    waiting = store.write(_genre("folk"))
    cancelled = waiting.cancel()
    release.set()
    wait(busy)

    assert cancelled
    assert store.read(_names).result() == []


def test_close_finishes_waiting_units_and_refuses_new_ones(store_url: str) -> None:
    store = opening.connect(store_url)
    release = threading.Event()
    busy = [store.write(lambda: release.wait(30)) for _ in range(WRITERS)]
    waiting = [store.write(_genre(f"genre-{number}")) for number in range(20)]
    reading = store.read(_names)
    closing = threading.Thread(target=store.close)
    closing.start()
    release.set()
    closing.join(30)

    every: list[Future[Any]] = [*busy, *waiting, reading]
    assert not wait(every, timeout=0).not_done
    assert {future.exception() for future in waiting} == {None}
    for take in (store.read, store.write):
        with pytest.raises(Unavailable):
            take(_names)
    store.close()
    with opening.connect(store_url) as again:
        assert len(again.read(_names).result()) == 20


def test_every_unit_is_answered_when_a_store_closes(store_url: str) -> None:
    store = opening.connect(store_url)
    answered: list[int] = []
    started = threading.Barrier(5)

    def write(thread: int) -> None:
        started.wait()
        for number in range(10_000):
            try:
                store.write(_genre(f"{thread}-{number}")).result(30)
            except Unavailable:
                return
            answered.append(1)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    while len(answered) < 20:
        time.sleep(0.001)
    store.close()
    for thread in threads:
        thread.join(30)

    assert not any(thread.is_alive() for thread in threads)
    with opening.connect(store_url) as again:
        assert len(again.read(_names).result()) == len(answered)


def test_concurrent_callers_lose_no_write(store: Store) -> None:
    def callers(thread: int) -> None:
        for number in range(25):
            store.write(_genre(f"{thread}-{number}")).result(30)
            assert f"{thread}-{number}" in store.read(_names).result(30)

    threads = [threading.Thread(target=callers, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(store.read(_names).result()) == 200
