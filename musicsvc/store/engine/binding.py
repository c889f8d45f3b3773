"""Select the database that the Peewee models use on the current thread."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from peewee import BaseQuery, Database, DatabaseProxy

T = TypeVar("T")
_current: ContextVar[Database | None] = ContextVar("musicsvc_database", default=None)


class CurrentDatabase(DatabaseProxy):
    """A Peewee proxy for the database of the current thread. All models are bound to this proxy."""

    @property
    def obj(self) -> Database | None:
        """The database of the current thread, or None if none was set."""
        return _current.get()

    @obj.setter
    def obj(self, value: Database | None) -> None:
        """Ignore any assignment, because Peewee assigns None on initialization. The database is set with `bind`."""


def bind(database: Database) -> None:
    """Make the models use `database` on the current thread."""
    _current.set(database)


@contextmanager
def bound(database: Database) -> Iterator[None]:
    """Make the models use `database` inside the `with` block."""
    token = _current.set(database)
    try:
        yield
    finally:
        _current.reset(token)


def perform(database: Database, unit: Callable[[], T]) -> T:
    """Call `unit` in the open transaction and return the result. Raises TypeError if the result is a Peewee query."""
    database.push_transaction(unit)
    try:
        result = unit()
    finally:
        database.pop_transaction()
    if isinstance(result, BaseQuery):
        raise TypeError("a unit of work must return rows, not a query that would run after its end")
    return result


def current() -> Database:
    """Return the database of the current thread. Raises RuntimeError if none was set."""
    database = _current.get()
    if database is None:
        raise RuntimeError("store functions must run in a unit of Store.read or Store.write")
    return database


def savepoint() -> AbstractContextManager[Any]:
    """Return a context manager that opens a savepoint. An error in the block undoes only the block's changes."""
    point: AbstractContextManager[Any] = current().savepoint()
    return point
