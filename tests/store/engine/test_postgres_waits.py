"""PostgreSQL: units of work end in time, and one that waits for a lock delays no other one."""

import socket
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from musicsvc.errors import Unavailable
from musicsvc.store import opening
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Tag
from tests.support.bounds import Bounds
from tests.support.program import until

psycopg = pytest.importorskip("psycopg")
conninfo = pytest.importorskip("psycopg.conninfo")
pytestmark = pytest.mark.only_on("postgres")
PATIENCE = 30.0
SLEEPING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'active' AND query = 'SELECT pg_sleep(60)'
"""
# COMMIT waits for a second more than a unit of work with a limit does.
SLOW_COMMIT = """
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON tag DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.name = 'slow') EXECUTE FUNCTION wait();
"""


def _tag(name: str) -> Callable[[], None]:
    """Return a unit that adds a tag."""
    return lambda: Tag.insert(name=name).execute() and None


def _tags() -> list[str]:
    return [tag.name for tag in Tag.select().order_by(Tag.id)]


def test_a_unit_that_waited_for_its_whole_time_is_not_begun(store: Store) -> None:
    go_on, begun = threading.Event(), threading.Event()
    busy = [store.read(lambda: go_on.wait(PATIENCE)) for _ in range(store.parallel_reads)]

    late = store.read(begun.set, within=0.05)
    time.sleep(0.1)
    go_on.set()

    with pytest.raises(Unavailable) as refusal:
        late.result(PATIENCE)
    assert "waited too long" in refusal.value.here
    assert not begun.is_set()
    assert all(one.result(PATIENCE) for one in busy)


def test_the_server_ends_a_statement_with_the_time_of_its_unit(store: Store) -> None:
    with pytest.raises(Unavailable):
        store.write(lambda: fetch("SELECT pg_sleep(60)"), within=0.9).result(PATIENCE)

    until(lambda: store.read(lambda: fetch(SLEEPING)).result() == [(0,)], PATIENCE)


def test_a_commit_that_is_not_confirmed_is_neither_acknowledged_nor_repeated(store: Store, admin: Any) -> None:
    admin.execute(SLOW_COMMIT)
    calls: list[str] = []

    def unit() -> None:
        calls.append("called")
        Tag.create(name="slow")

    with pytest.raises(Unavailable) as refusal:
        store.write(unit, within=0.5).result(PATIENCE)

    assert refusal.value.message == "The database did not confirm the change. It may have been stored."
    assert calls == ["called"]
    until(lambda: store.read(_tags).result() == ["slow"], PATIENCE)


def test_units_that_need_a_locked_table_do_not_delay_others(store: Store, admin: Any) -> None:
    with admin.transaction():
        admin.execute("LOCK TABLE tag IN ACCESS EXCLUSIVE MODE")
        locked = [store.read(_tags) for _ in range(9)] + [store.write(_tag(f"tag {number}")) for number in range(7)]
        for number in range(9):
            genre = f"genre {number}"
            store.write(lambda: Genre.insert(name=genre, display_name=genre).execute()).result(PATIENCE)  # noqa: B023 - done at once
            assert store.read(Genre.select().count).result(PATIENCE) == number + 1
        assert not any(one.done() for one in locked)

    for one in locked:
        one.result(PATIENCE)
    assert len(store.read(_tags).result()) == 7


def test_a_group_of_units_does_not_wait_for_a_lock(store: Store, admin: Any) -> None:
    with admin.transaction():
        admin.execute("LOCK TABLE tag IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        with pytest.raises(Unavailable, match="not available"):
            store.read(_tags, patient=False).result(PATIENCE)
        assert time.monotonic() - began < 3


@pytest.mark.slow
def test_hosts_that_accept_connections_and_never_respond_do_not_keep_from_another_one(store_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        ports = [listener.getsockname()[1] for listener in (one, two)]
        folder, silent = conninfo.conninfo_to_dict(store_url)["host"], f"{store_url}&port={ports[0]},{ports[1]}"
        hosts = f"host=127.0.0.1,127.0.0.1,{quote(str(folder), safe='')}"
        before = f"host={quote(str(folder), safe='')}"
        began = time.monotonic()
        with opening.connect(f"{silent},5432".replace(before, hosts)) as store:
            assert store.read(_tags).result(PATIENCE) == []
        assert time.monotonic() - began < 8

        began = time.monotonic()
        with pytest.raises(Unavailable):
            opening.connect(silent.replace(before, "host=127.0.0.1,127.0.0.1"))
        assert time.monotonic() - began < 8


def test_only_so_many_units_wait_for_locks(store: Store, admin: Any, bounds: Bounds) -> None:
    bounds(most_patient=3)
    with admin.transaction():
        admin.execute("LOCK TABLE tag IN ACCESS EXCLUSIVE MODE")
        locked = [store.read(_tags) for _ in range(5)]
        refused = [one for one in locked if _is_refused(one)]
        assert len(refused) == 2

    assert [one.result(PATIENCE) for one in locked if one not in refused] == [[]] * 3


def _is_refused(one: Any) -> bool:
    """Return whether the unit fails within a second."""
    try:
        return isinstance(one.exception(1), Unavailable)
    except TimeoutError:
        return False


def test_a_health_check_fails_while_nothing_can_be_written(store: Store, admin: Any) -> None:
    assert _probe(store) is None
    name = admin.info.dbname
    admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    admin.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid()"
    )

    until(lambda: isinstance(_probe(store), Unavailable), PATIENCE)
    assert str(_probe(store)) == "The database accepts no changes at the moment."
    assert store.read(_tags).result() == []


def _probe(store: Store) -> BaseException | None:
    return store.probe(_tags, within=PATIENCE).exception(PATIENCE)
