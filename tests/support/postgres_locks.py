"""Waiting for locks of PostgreSQL, advisory ones and those of rows, and the loss of connections."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Event
from typing import Any

from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from tests.support.program import PATIENCE, until

WAITING = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def one_waits(store: Store) -> bool:
    """Return whether one transaction waits for another."""
    return store.read(lambda: fetch(WAITING)).result() == [(1,)]


def require_wait(store: Store, lock: Callable[[], None], change: Callable[[], object]) -> None:
    """Check that the change waits while another transaction has the lock, and is made after that."""
    require_begun_waits(store, lock, lambda: store.write(change))


def require_begun_waits(store: Store, lock: Callable[[], None], begin: Callable[[], Future[Any]]) -> None:
    """Check that what `begin` begins waits while another transaction has the lock, and is done after that."""
    locked, done = Event(), Event()

    def hold() -> None:
        lock()
        locked.set()
        assert done.wait(2 * PATIENCE)

    held = store.write(hold)
    assert locked.wait(PATIENCE)
    try:
        begun = begin()
        until(lambda: begun.done() or one_waits(store))
        assert not begun.done()
    finally:
        done.set()
    held.result()
    begun.result()


def cut(admin: Any) -> int:
    """Terminate all other connections to the database. Return their number."""
    query = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    return len(admin.execute(query).fetchall())
