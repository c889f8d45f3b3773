"""Changes on PostgreSQL: seen at once on the machine of the writer, within a second on others, or nothing is known."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.models import Genre, Tag

psycopg = pytest.importorskip("psycopg")
from musicsvc.store.engine.postgres import changes  # noqa: E402 - imports the driver
from musicsvc.store.engine.postgres.store import PostgresStore  # noqa: E402 - the same

pytestmark = pytest.mark.only_on("postgres")
SECOND = 10.0  # one on a machine that is not busy


@pytest.fixture
def machines(store_url: str, tmp_path: Path) -> Iterator[Callable[[str], PostgresStore]]:
    """Return a function that opens the database on a machine of this name, as a process of its own would."""
    opened = []

    def on(machine: str) -> PostgresStore:
        folder = tmp_path / machine
        folder.mkdir(exist_ok=True)
        opened.append(PostgresStore(store_url, folder))
        return opened[-1]

    yield on
    for store in opened:
        store.close()


def watching(store: PostgresStore) -> PostgresStore:
    """Wait until the store knows of changes."""
    within(10, lambda: store.changes() is not None)
    return store


def within(seconds: float, holds: Callable[[], object]) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def tag(name: str) -> Callable[[], None]:
    return lambda: Tag.insert(name=name).execute() and None


def changed(store: PostgresStore, before: Any) -> set[str]:
    now = store.table_versions()
    return {table for table in now if now[table] != before[table]}


def files(tmp_path: Path, machine: str) -> list[Path]:
    return list((tmp_path / machine).iterdir())


def test_a_commit_on_the_same_machine_is_seen_before_it_is_acknowledged(machines: Callable[..., Any]) -> None:
    reader, writer = watching(machines("a")), machines("a")
    for number in range(20):
        before, changes = reader.table_versions(), reader.changes()
        (writer, reader)[number % 2].write(tag(f"t{number}")).result()
        assert reader.changes() != changes
        assert changed(reader, before) == {"tag"}


def test_a_commit_on_another_machine_is_seen_within_a_second(machines: Callable[..., Any]) -> None:
    reader, writer = watching(machines("a")), machines("b")
    for number in range(3):
        before, changes = reader.table_versions(), reader.changes()
        writer.write(tag(f"t{number}")).result()
        within(SECOND, lambda changes=changes: reader.changes() != changes)  # type: ignore[misc]  # bound in the loop
        assert changed(reader, before) == {"tag"}


def test_counters_and_other_programs_change_no_table_but_are_seen(machines: Callable[..., Any], store_url: str) -> None:
    reader, writer = watching(machines("a")), machines("b")
    before, changes, others = reader.table_versions(), reader.changes(), reader.others()
    assert reader.others() == others
    writer.write(tag("counted"), counters_only=True).result()
    within(SECOND, lambda: reader.changes() != changes)
    assert reader.others() != others
    changes, others = reader.changes(), reader.others()
    with psycopg.connect(store_url, autocommit=True) as other:
        other.execute("INSERT INTO genre (name, display_name) VALUES ('a', 'A')")
    within(SECOND, lambda: reader.changes() != changes)
    assert reader.others() != others
    assert changed(reader, before) == set()


def test_reads_and_failed_units_change_nothing(machines: Callable[..., Any]) -> None:
    reader = watching(machines("a"))
    before = reader.table_versions()

    def fail() -> None:
        Genre.create(name="a", display_name="A")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        reader.write(fail).result()
    reader.write(lambda: Tag.select().count()).result()
    time.sleep(0.6)
    assert changed(reader, before) == set()


def test_nothing_is_known_once_the_database_was_not_read_for_a_second(
    machines: Callable[..., Any], store_url: str
) -> None:
    reader = watching(machines("a"))
    before = reader.table_versions()
    name = store_url.removeprefix("postgresql:///").partition("?")[0]
    with psycopg.connect(store_url.replace(f"/{name}?", "/postgres?"), autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,))
        within(SECOND, lambda: reader.changes() is None)
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    watching(reader)
    assert changed(reader, before) == set(before), "the database may be another one now"


def test_changes_are_looked_for_again_after_an_error_that_nobody_foresaw(
    machines: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reader, execute, failed = watching(machines("a")), psycopg.Connection.execute, threading.Event()

    def limited(connection: Any, query: Any, *values: Any, **options: Any) -> Any:
        if query == changes.NUMBERS and not failed.is_set():
            failed.set()
            raise MemoryError
        return execute(connection, query, *values, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", limited)
    assert failed.wait(SECOND)
    before = reader.table_versions()
    machines("b").write(tag("b")).result()
    within(SECOND, lambda: changed(reader, before) == {"tag"})
    assert "unhandled exception while looking for changes of PostgreSQL" in caplog.messages


def test_a_removed_file_is_replaced_and_outdates_everything(machines: Callable[..., Any], tmp_path: Path) -> None:
    reader, writer = watching(machines("a")), machines("a")
    before = reader.table_versions()
    (file,) = files(tmp_path, "a")
    file.unlink()
    within(SECOND, lambda: changed(reader, before) == set(before))
    before = reader.table_versions()
    writer.write(tag("a")).result()
    assert changed(reader, before) == {"tag"}


def test_the_last_reader_removes_the_file_and_writers_make_none(machines: Callable[..., Any], tmp_path: Path) -> None:
    first, second, writer = watching(machines("a")), watching(machines("a")), machines("a")
    first.close()
    assert len(files(tmp_path, "a")) == 1
    second.close()
    writer.write(tag("a")).result()
    assert files(tmp_path, "a") == []


def test_readers_that_close_at_once_leave_no_file(template: object, tmp_path: Path) -> None:  # noqa: ARG001 - runs on PostgreSQL alone
    with ThreadPoolExecutor(4) as threads:
        for number in range(100):
            file = tmp_path / f"{number}"
            readers = [changes.Marks(file) for _ in range(4)]
            list(threads.map(changes.Marks.close, readers))
            assert not file.exists()


def test_a_link_that_somebody_put_in_place_of_the_file_is_not_followed(
    machines: Callable[..., Any], tmp_path: Path
) -> None:
    reader = watching(machines("a"))
    (file,) = files(tmp_path, "a")
    reader.close()
    (tmp_path / "elsewhere").touch()
    file.symlink_to(tmp_path / "elsewhere")
    other = machines("a")
    other.write(tag("a")).result()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        assert other.changes() is None
    assert (tmp_path / "elsewhere").stat().st_size == 0


def test_a_user_without_rights_of_administration_can_use_it(store_url: str) -> None:
    with psycopg.connect(store_url) as connection:  # rolled back, so that the role is not kept
        connection.execute("CREATE ROLE plain")
        connection.execute("SET LOCAL ROLE plain")
        assert connection.execute(changes.IDENTITY).fetchone()
        connection.execute("SELECT pg_current_snapshot()")
        connection.rollback()
