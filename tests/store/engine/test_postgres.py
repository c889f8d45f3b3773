"""PostgreSQL: lost connections, retried transactions, addresses."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import peewee
import pytest

from musicsvc.errors import Failure, Unavailable
from musicsvc.store import opening
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import current, fetch, lock_rows, run_many
from musicsvc.store.engine.store import NO_THREAD, Store
from musicsvc.store.models import Secret, Tag
from musicsvc.store.schema import history, schema
from tests.support import upgrades
from tests.support.postgres_locks import cut
from tests.support.program import until

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.only_on("postgres")

BEGIN_ANEW = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"


def _tags() -> list[str]:
    return [tag.name for tag in Tag.select().order_by(Tag.id)]


def _tag(name: str) -> Callable[[], None]:
    """Return a unit that adds a tag."""
    return lambda: Tag.insert(name=name).execute() and None


def test_connections_lost_between_two_units_fail_no_unit(store: Store, admin: Any) -> None:
    for round_ in range(3):
        writes = [store.write(_tag(f"{round_}-{number}")) for number in range(8)]
        reads = [store.read(_tags) for _ in range(8)]
        assert all(done.result() is None for done in writes)
        assert all(done.result() is not None for done in reads)
        assert cut(admin) >= 2

    assert len(store.read(_tags).result()) == 24


def test_connections_that_the_server_ends_as_they_were_idle_fail_no_unit(store_url: str, admin: Any) -> None:
    with opening.connect(f"{store_url}&options={quote('-c idle_session_timeout=50')}") as store:
        for _ in range(4):
            ((used,),) = store.read(lambda: fetch("SELECT pg_backend_pid()")).result()
            until(partial(_is_gone, admin, used))


def _is_gone(admin: Any, pid: int) -> bool:
    return not admin.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall()


def test_a_unit_for_which_the_system_starts_no_thread_is_refused_and_does_not_run_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name.startswith("store-write"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with opening.connect(store.url) as limited_store:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", limited)
            with pytest.raises(Unavailable) as failure:
                limited_store.write(_tag("refused"))
        limited_store.write(_tag("written")).result()
    assert (failure.value.message, failure.value.here) == ("The database is not available.", NO_THREAD)
    assert store.read(_tags).result() == ["written"]


def test_a_unit_that_loses_its_connection_is_retried(store: Store, admin: Any) -> None:
    attempts: list[int] = []

    def unit() -> None:
        Tag.create(name="one")
        attempts.append(1)
        if len(attempts) == 1:
            cut(admin)
        Tag.create(name="two")

    store.write(unit).result(30)

    assert len(attempts) == 2
    assert store.read(_tags).result() == ["one", "two"]


def test_a_read_that_loses_its_connection_at_the_end_has_its_result(store: Store, admin: Any) -> None:
    def unit() -> tuple[list[str], int]:
        return _tags(), cut(admin)

    assert store.read(unit).result(30)[0] == []


def test_a_unit_that_the_server_ends_as_it_was_idle_for_too_long_is_unavailable(store: Store) -> None:
    def unit() -> None:
        current().execute_sql("SET LOCAL idle_in_transaction_session_timeout = 1")
        time.sleep(0.1)
        Tag.create(name="late")

    with pytest.raises(Unavailable) as failure:
        store.write(unit).result(30)
    assert "idle-in-transaction timeout" in failure.value.here
    assert store.read(_tags).result() == []


def test_the_driver_logs_nothing_of_a_connection_that_is_lost_between_many_rows(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    end = "SELECT pg_terminate_backend(pg_backend_pid()) WHERE ? = 2"

    assert isinstance(store.write(lambda: run_many(end, [(row,) for row in range(9000)])).exception(30), Unavailable)
    assert [record.getMessage() for record in caplog.records] == []


def test_a_deadlock_is_resolved_by_retrying_a_unit(store: Store) -> None:
    for name in ("a", "b"):
        store.write(_tag(name)).result()
    meet = threading.Barrier(2)

    def unit(*names: str) -> None:
        for name in names:
            list(lock_rows(Tag.select().where(Tag.name == name)))
            with suppress(threading.BrokenBarrierError):
                meet.wait(0.5)
        Tag.create(name="-".join(names))

    futures = [store.write(lambda: unit("a", "b")), store.write(lambda: unit("b", "a"))]

    assert [future.result(30) for future in futures] == [None, None]
    assert set(store.read(_tags).result()) == {"a", "b", "a-b", "b-a"}


def test_a_serialization_failure_is_retried(store: Store, admin: Any) -> None:
    store.write(_tag("calm")).result()
    attempts: list[str] = []

    def unit() -> None:
        current().execute_sql(BEGIN_ANEW)
        attempts.append(Tag.get().name)
        if len(attempts) == 1:
            admin.execute("UPDATE tag SET name = 'theirs'")
        Tag.update(name=Tag.name + "!").execute()

    store.write(unit).result(30)

    assert attempts == ["calm", "theirs"]
    assert store.read(_tags).result() == ["theirs!"]


def test_a_unit_that_continues_after_a_failed_statement_fails(store: Store) -> None:
    def unit() -> None:
        Tag.create(name="calm")
        with suppress(peewee.IntegrityError):
            Tag.create(name="calm")

    with pytest.raises(RuntimeError, match="failed outside a savepoint"):
        store.write(unit).result()
    assert store.read(_tags).result() == []


def test_a_lock_held_too_long_is_unavailable_after_five_seconds(store: Store, admin: Any) -> None:
    with admin.transaction():
        admin.execute("LOCK TABLE tag IN EXCLUSIVE MODE")
        began = time.monotonic()
        waiting = store.write(_tag("calm"))
        assert store.read(_tags).result(3) == []
        with pytest.raises(Unavailable):
            waiting.result(30)
        assert 4.5 < time.monotonic() - began < 10

    store.write(_tag("calm")).result()


def test_a_server_that_was_read_only_is_used_again_without_a_restart(store: Store, admin: Any) -> None:
    store.write(_tag("calm")).result()
    admin.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',"
        " current_database()); END $$"
    )
    cut(admin)
    with pytest.raises(Unavailable):
        store.write(_tag("loud")).result()
    admin.execute("SET default_transaction_read_only = off")
    admin.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only',"
        " current_database()); END $$"
    )

    store.write(_tag("slow")).result()

    assert store.read(_tags).result() == ["calm", "slow"]


@pytest.mark.parametrize("use", [opening.connect, schema.upgrade])
def test_a_missing_server_is_reported_in_one_line_without_the_password(
    tmp_path: Path, use: Callable[[str], object]
) -> None:
    with pytest.raises(Unavailable) as refusal:
        use(f"postgresql://ada:secret@/none?host={quote(str(tmp_path), safe='')}")

    assert refusal.value.message == "The database is not available."
    told = f"The database postgresql://ada:***@/none?host={quote(str(tmp_path), safe='')} does not accept connections: "
    assert refusal.value.here.startswith(told)
    assert refusal.value.here.endswith(" failed: No such file or directory.")
    assert "secret" not in refusal.value.here
    assert "\n" not in refusal.value.here


def test_a_malformed_address_is_reported_without_its_password() -> None:
    with pytest.raises(Failure, match="cannot be read") as refusal:
        opening.connect("postgresql://ada:secret@[localhost/x")

    assert "secret" not in refusal.value.message


def test_the_search_path_of_the_address_is_used(new_database: Callable[..., str]) -> None:
    url = new_database(migrated=False)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA app")
    inside = f"{url}&options={quote('-c search_path=app')}"

    assert schema.upgrade(inside) == history.available()

    with opening.connect(inside) as store:
        assert store.read(schema.problems).result() == []
    with pytest.raises(Failure, match="no tables yet"):
        opening.connect(url)


def test_settings_of_the_server_change_neither_bytes_nor_the_isolation_of_migrations(store_url: str) -> None:
    options = "-c standard_conforming_strings=off -c default_transaction_isolation=serializable"
    value = bytes(range(256))
    with opening.connect(f"{store_url}&options={quote(options)}") as store:
        store.write(lambda: bulk.insert(Secret, ["name", "value"], [("bytes", value)])).result()
        assert store.read(lambda: bytes(Secret.get(name="bytes").value)).result() == value
        with schema.migrating(store.url) as database, database.atomic():
            assert database.execute_sql("SHOW transaction_isolation").fetchone() == ("read committed",)


def test_a_migration_waits_for_another_without_limit(new_database: Callable[..., str]) -> None:
    url = new_database(migrated=False)
    done: list[list[str]] = []
    with psycopg.connect(url) as other:
        other.execute(f"SELECT pg_advisory_lock({schema.ADVISORY_LOCK})")
        newer = " -c transaction_timeout=3000" if other.info.server_version >= 17_00_00 else ""
        impatient = f"{url}&options={quote(f'-c statement_timeout=1000{newer}')}"
        thread = threading.Thread(target=lambda: done.append(schema.upgrade(impatient)))
        thread.start()
        thread.join(6)
        assert thread.is_alive()
    thread.join(30)

    assert done == [history.available()]


def test_a_migration_waits_for_a_table_as_long_as_a_unit_does(store_url: str, tmp_path: Path) -> None:
    folder = upgrades.make_next(tmp_path / "next")
    with psycopg.connect(store_url) as other, ThreadPoolExecutor() as thread:
        other.execute("LOCK TABLE album")
        upgrade = thread.submit(schema.upgrade, store_url, folder=folder)
        try:
            with pytest.raises(Failure) as refused:
                upgrade.result(20)
        finally:
            other.rollback()
    kept = "Of the migrations, 9002_moods_of_albums has changed nothing, and those before it are kept."
    assert refused.value.here.endswith(f"timeout. {kept} To go on, run the command again.")


def test_what_a_role_may_not_do_is_said_in_one_line(
    store_url: str, new_database: Callable[..., str], admin: Any
) -> None:
    role = f"stranger_{admin.info.dbname}"
    admin.execute(f'CREATE ROLE "{role}" LOGIN')
    empty = new_database(migrated=False)
    told = (
        "The database is busy or cannot be used: permission denied for {}. The role of database_url must own the"
        " database and its tables: ALTER … OWNER TO …."
    )
    try:
        for url, use, what in (
            (empty, schema.upgrade, "schema public"),
            (store_url, schema.upgrade, "table schema_migration"),
            (store_url, opening.connect, "table schema_migration"),
        ):
            with pytest.raises(Failure) as refused:
                use(url.replace("user=musicsvc", f"user={role}"))
            assert refused.value.here.startswith(told.format(what))
    finally:
        admin.execute(f'DROP ROLE "{role}"')


def test_a_database_that_cannot_store_every_text_is_refused(store_url: str, admin: Any) -> None:
    name = f"{admin.info.dbname}_ascii"
    admin.execute(f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    refused = rf"/{name}\S* has the encoding SQL_ASCII, not UTF8. Create one with: createdb --encoding=UTF8"
    try:
        for use in (schema.upgrade, opening.connect):
            with pytest.raises(Failure, match=refused):
                use(store_url.replace(f"/{admin.info.dbname}?", f"/{name}?"))
    finally:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
