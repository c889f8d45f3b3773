"""The writer thread of SQLite: it commits several units together; a failing unit affects no other."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import apsw
import peewee
import pytest

from musicsvc.errors import Failure, Unavailable
from musicsvc.store import opening
from musicsvc.store.engine.sql import current, savepoint
from musicsvc.store.engine.sqlite.files import BUSY_SECONDS, DiskFault
from musicsvc.store.engine.sqlite.group_commit import PAUSE_SECONDS
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Tag
from musicsvc.store.schema import schema
from tests.faults.locking import locked
from tests.support.bounds import Bounds

pytestmark = pytest.mark.only_on("sqlite")
SHORT = 1.0  # seconds


def _tag(name: str) -> Callable[[], None]:
    """Return a unit that adds a tag."""
    return lambda: Tag.insert(name=name).execute() and None


def _tags() -> set[str]:
    return {tag.name for tag in Tag.select()}


def _together(store: Store, units: list[Callable[[], Any]]) -> list[Future[Any]]:
    """Queue the units while the writer is busy, so that they form one group."""
    running, release = threading.Event(), threading.Event()

    def busy() -> None:
        running.set()
        release.wait(30)

    first = store.write(busy)
    assert running.wait(30)
    futures = [store.write(unit) for unit in units]
    release.set()
    first.result(30)
    return futures


@pytest.fixture
def statements(store: Store) -> list[str]:
    """Record the statements of the writer from now on."""
    sent: list[str] = []
    store.write(current).result().query_hooks.append(lambda event: sent.append(event.sql))
    return sent


@pytest.fixture
def hasty(store_url: str, bounds: Bounds) -> Iterator[Store]:
    """A store that waits for locks of other processes for one second instead of five."""
    assert BUSY_SECONDS == 5
    bounds(busy_seconds=SHORT)
    with opening.connect(store_url) as opened:
        yield opened


def test_waiting_units_share_one_commit(store: Store, statements: list[str]) -> None:
    futures = _together(store, [_tag(f"tag-{number}") for number in range(50)])

    assert [future.result(30) for future in futures] == [None] * 50
    assert statements.count("COMMIT") <= 2
    assert len(store.read(_tags).result()) == 50


def test_a_commit_has_at_most_a_group_of_units(store: Store, bounds: Bounds) -> None:
    bounds(commit_group=2)
    before = store.workload.commits
    futures = _together(store, [_tag(f"tag-{number}") for number in range(6)])

    assert [future.result(30) for future in futures] == [None] * 6
    assert store.workload.commits == before + 1 + 3


@pytest.mark.parametrize("order", ["!a", "a!", "a!bac"])
def test_a_failing_unit_does_not_roll_back_its_group(store: Store, order: str) -> None:
    def failing() -> None:
        Tag.create(name="half")
        raise Failure("No.")

    futures = _together(store, [failing if name == "!" else _tag(name) for name in order])

    expected = {name: Failure if name == "!" else type(None) for name in order}
    for at, (name, future) in enumerate(zip(order, futures, strict=True)):
        assert type(future.exception(10)) is (peewee.IntegrityError if name in order[:at] else expected[name])
    assert store.read(_tags).result() == {*order} - {"!"}


def test_an_unexpected_error_of_the_writer_fails_its_units_and_no_later_one(store: Store) -> None:
    hooks = store.write(current).result().query_hooks

    def fail(event: Any) -> None:
        if event.sql == "BEGIN IMMEDIATE":
            hooks.remove(fail)
            raise RuntimeError("odd")

    hooks.append(fail)
    error = store.write(_tag("a")).exception(30)
    assert (type(error), str(error)) == (RuntimeError, "odd")
    assert store.write(_tag("b")).exception(30) is None
    assert store.read(_tags).result() == {"b"}


def _limit(pages: int) -> None:
    """Let the database grow by this number of pages, as if the disk were full then."""
    (now,) = current().execute_sql("PRAGMA page_count").fetchone()
    current().execute_sql(f"PRAGMA max_page_count = {now + pages}").fetchone()


def _flood() -> None:
    for number in range(10_000):
        Tag.create(name=f"{number}" + "x" * 4000)


def _careful_flood() -> None:
    with savepoint():
        _flood()


def _reckless_flood() -> None:
    """Continue after the error, although the transaction was rolled back."""
    try:
        _flood()
    except peewee.OperationalError:
        Tag.create(name="stray")


@pytest.mark.parametrize("flood", [_flood, _careful_flood, _reckless_flood])
def test_a_unit_that_fills_the_database_loses_no_other_write(
    store: Store, flood: Callable[[], None], statements: list[str]
) -> None:
    store.write(lambda: _limit(40)).result()
    units = [_tag("a"), _tag("b"), flood, _tag("c"), lambda: Tag.create(name="b"), _tag("d")]

    errors = [future.exception(30) for future in _together(store, units)]

    assert [error is None for error in errors] == [True, True, False, True, False, True]
    assert isinstance(errors[2], Unavailable)
    assert isinstance(errors[4], peewee.IntegrityError)
    assert statements.count("BEGIN IMMEDIATE") > len(units), "the trap was not met: SQLite kept the transaction"
    assert store.read(_tags).result() == {"a", "b", "c", "d"}
    assert store.read(schema.problems).result() == []
    store.write(lambda: _limit(10_000)).result()
    store.write(_tag("later")).result()
    assert "later" in store.read(_tags).result()


def test_units_that_are_retried_alone_are_answered_one_by_one(store: Store, statements: list[str]) -> None:
    store.write(lambda: _limit(40)).result()
    release = threading.Event()
    store.write(lambda: release.wait(30) and None)
    earlier = [store.write(_tag("a")), store.write(_flood)]
    last = store.write(lambda: [future.done() for future in earlier])
    release.set()

    assert last.result(30) == [True, True]
    assert [type(future.exception(1)) for future in earlier] == [type(None), DiskFault]
    assert statements.count("BEGIN IMMEDIATE") > 1 + len(earlier), "the trap was not met: SQLite kept the transaction"


def test_a_full_database_still_answers_everyone(store: Store) -> None:
    store.write(lambda: _limit(3)).result()
    units = [_tag("x" * 3000 + str(number)) for number in range(40)]

    errors = [future.exception(30) for future in _together(store, units)]

    acknowledged = {"x" * 3000 + str(number) for number, error in enumerate(errors) if error is None}
    assert {type(error) for error in errors} == {type(None), DiskFault}
    assert store.read(_tags).result() == acknowledged


def test_the_operator_sees_the_file_and_the_error_and_clients_do_not(hasty: Store, file: Path) -> None:
    hasty.write(lambda: _limit(3)).result()
    full = hasty.write(_tag("x" * 30_000)).exception(30)
    with locked(file):
        busy = hasty.write(_tag("ours")).exception(30)

    assert isinstance(full, Unavailable)
    assert isinstance(busy, Unavailable)
    assert {full.message, busy.message} == {Unavailable().message}
    assert full.here == f"The disk of {file} is full. Make room on it, then try again."
    assert busy.here == f"{file} is locked by another program. Try again shortly."


def test_a_lock_of_another_process_is_waited_for(store: Store, file: Path) -> None:
    with locked(file) as release:
        waiting = store.write(_tag("ours"))
        time.sleep(0.5)
        assert not waiting.done()
        release()
        waiting.result(30)

    assert store.read(_tags).result() == {"theirs", "ours"}


def test_a_lock_held_too_long_is_unavailable_after_some_seconds_until_it_is_released(hasty: Store, file: Path) -> None:
    with locked(file) as release:
        first = hasty.write(_tag("first"))
        with pytest.raises(TimeoutError):
            first.result(SHORT / 2)
        second = hasty.write(_tag("second"))
        assert hasty.read(_tags).result(3) == set()
        with pytest.raises(Unavailable):
            first.result(30)
        release()
        second.result(30)

    assert hasty.read(_tags).result() == {"theirs", "second"}


def test_work_in_many_transactions_leaves_the_lock_to_other_processes_in_between(store: Store) -> None:
    times: dict[str, list[float]] = {"BEGIN IMMEDIATE": [], "COMMIT": []}

    def note(event: Any) -> None:
        times.get(event.sql, []).append(time.monotonic())

    store.write(current).result().query_hooks.append(note)
    for _ in range(14):
        store.write(lambda: time.sleep(0.05)).result(30)
    begun, committed = times.values()
    free = [after - before for before, after in zip(committed, begun[1:], strict=False)]
    assert sum(each >= PAUSE_SECONDS for each in free) >= 2, free


@pytest.mark.slow
def test_checkpoints_by_another_process_disturb_no_unit(store: Store, file: Path) -> None:
    over = threading.Event()

    def checkpoint() -> None:
        connection = apsw.Connection(str(file))
        while not over.is_set():
            for mode in ("TRUNCATE", "RESTART"):
                try:
                    connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
                except apsw.BusyError:
                    continue
        connection.close()

    other = threading.Thread(target=checkpoint)
    other.start()
    try:
        for number in range(200):
            reading, writing = store.read(_tags), store.write(_tag(f"tag-{number}"))
            writing.result(30)
            assert len(reading.result(30)) in {number, number + 1}
    finally:
        over.set()
        other.join()

    assert len(store.read(_tags).result()) == 200


def test_commits_of_any_process_change_the_change_counter(store: Store, file: Path) -> None:
    seen = [store.changes()]
    store.write(_tag("ours")).result()
    seen.append(store.changes())
    with locked(file):
        seen.append(store.changes())
    seen.append(store.changes())

    assert seen[0] != seen[1]
    assert seen[1] == seen[2]
    assert seen[2] != seen[3]


def test_a_moved_file_is_unavailable_until_it_is_back(store: Store, file: Path) -> None:
    store.write(_tag("calm")).result()
    aside = file.with_suffix(".aside")
    file.rename(aside)
    for place in (lambda: None, lambda: shutil.copy(aside, file)):
        place()
        answers: list[Future[Any]] = [store.write(_tag("lost")), *(store.read(_tags) for _ in range(8))]
        for answer in answers:
            with pytest.raises(Unavailable, match="is not available"):
                answer.result(30)

    aside.replace(file)

    store.write(_tag("loud")).result(30)
    assert {frozenset(store.read(_tags).result(30)) for _ in range(8)} == {frozenset({"calm", "loud"})}


def test_the_last_connection_leaves_only_the_database_and_its_lock_file(store_url: str, file: Path) -> None:
    with opening.connect(store_url) as store:
        store.write(_tag("calm")).result()
        store.read(_tags).result()
        store.changes()

    assert sorted(path.name for path in file.parent.iterdir()) == ["musicsvc.db", "musicsvc.db.in-use"]
