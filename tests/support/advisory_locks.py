"""Advisory locks of PostgreSQL."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

from musicsvc.store.engine.sql import fetch
from tests.support.program import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from musicsvc.store.engine.store import Store

WAITING = """
    SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted
"""


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
        until(lambda: begun.done() or store.read(lambda: fetch(WAITING)).result() == [(1,)])
        assert not begun.done()
    finally:
        done.set()
    held.result()
    begun.result()
