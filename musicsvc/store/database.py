"""The seam to the database: a unit of work is a function, run whole on a store thread in one transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from peewee import BaseQuery, Database, DatabaseProxy

from musicsvc import extras
from musicsvc.errors import Failure, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextlib import AbstractContextManager
    from typing import Self

    from musicsvc.store.workload import Workload

T = TypeVar("T")
_current: ContextVar[Database | None] = ContextVar("musicsvc_database", default=None)


class CurrentDatabase(DatabaseProxy):
    """What the models are bound to: the database of the store thread that runs the unit."""

    @property
    def obj(self) -> Database | None:
        """The database of this thread, None outside a unit."""
        return _current.get()

    @obj.setter
    def obj(self, value: Database | None) -> None:
        """Peewee's own initialisation sets None; a thread is bound by `bind` alone."""


class Store(ABC):
    """A database that is open; `read` and `write` take units from any thread."""

    url: str
    workload: Workload

    @abstractmethod
    def read(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on a reader connection, in one snapshot."""

    @abstractmethod
    def write(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit in one write transaction; the future is done after its commit, or after its rollback.

        A unit may run more than once, when the transaction around it was lost: it changes nothing but the database.
        """

    def write_urgently(self, unit: Callable[[], T]) -> Future[T]:
        """The same for what must not wait until a full disk has room again: revocations."""
        return self.write(unit)

    def keep_room(self) -> str:
        """Keep room on the disk for what is urgent, where there is any to spare; it may wait for the disk.

        What keeps us from it; empty where there is that room, or the disk is not ours.
        """
        return ""

    @abstractmethod
    def changes(self) -> int | None:
        """A number that moves whenever anybody commits a change; None where the store has none."""

    def waiting(self) -> tuple[int, int]:
        """How many units wait to read, and how many to write; none where they wait in another store."""
        return 0, 0

    @abstractmethod
    def close(self) -> None:
        """Finish what is under way, then close every connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def bind(database: Database) -> None:
    """Bind the models to this database for the present thread."""
    _current.set(database)


@contextmanager
def bound(database: Database) -> Iterator[None]:
    """Bind the models to this database for the block."""
    token = _current.set(database)
    try:
        yield
    finally:
        _current.reset(token)


def perform(database: Database, unit: Callable[[], T]) -> T:
    """Run the unit in the transaction that is open; Peewee's own `atomic` becomes a savepoint in it."""
    database.push_transaction(unit)
    try:
        result = unit()
    finally:
        database.pop_transaction()
    if isinstance(result, BaseQuery):
        raise TypeError("a unit returns what it read, not a query that would be run outside of it")
    return result


def enqueue(pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> Future[T]:
    """Hand work to the threads of a store; raises Unavailable once they are closing."""
    try:
        return pool.submit(work, *arguments)
    except RuntimeError:
        raise Unavailable("The service is shutting down.") from None


def queued(pool: ThreadPoolExecutor) -> int:
    """How much work waits for a thread of the pool."""
    return pool._work_queue.qsize()  # noqa: SLF001 - the library counts, and tells in no other way


def current() -> Database:
    """The database of the unit that runs."""
    database = _current.get()
    if database is None:
        raise RuntimeError("store functions run inside a unit of Store.read or Store.write")
    return database


def savepoint() -> AbstractContextManager[Any]:
    """A savepoint within the unit, for a statement that may meet a constraint."""
    point: AbstractContextManager[Any] = current().savepoint()
    return point


def locked(query: Any) -> Any:
    """The query with its rows locked until the unit ends; on SQLite a writing unit is alone anyway.

    Rows that merely refer to a locked one can still be inserted, so that units which lock in another order do not
    wait for each other in a circle.
    """
    return query.for_update("FOR NO KEY UPDATE") if current().for_update else query


def is_sqlite() -> bool:
    """Whether the unit runs on SQLite."""
    return not current().for_update


def connect(url: str) -> Store:
    """Open the store at this address.

    Raises Failure with the way out where the database is missing, foreign, damaged, or of another schema.
    """
    from musicsvc.store import schema  # noqa: PLC0415 - the drivers are loaded when a store is opened

    store = open_unchecked(url)
    try:
        schema.require_current(store)
    except BaseException:
        store.close()
        raise
    return store


def open_unchecked(url: str) -> Store:
    """Open the store without asking for its schema; for `init`, `db upgrade` and `db check`."""
    if url.startswith("sqlite:///"):
        from musicsvc.store.sqlite import SqliteStore  # noqa: PLC0415

        return SqliteStore(url)
    if url.startswith(("postgresql://", "postgres://")):
        with extras.required("postgres"):
            from musicsvc.store.postgres import PostgresStore  # noqa: PLC0415
        return PostgresStore(url)
    raise Failure("The database address must start with sqlite:/// or postgresql:// (setting database_url).")


def bytewise(field: Any) -> Any:
    """The text column in the order of its code points, the same on both stores."""
    return field if is_sqlite() else field.collate('"C"')
