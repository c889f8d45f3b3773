"""The database that the models use: the one whose unit of work runs on this thread."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from peewee import BaseQuery, Database, DatabaseProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

T = TypeVar("T")
_current: ContextVar[Database | None] = ContextVar("musicsvc_database", default=None)


class CurrentDatabase(DatabaseProxy):
    """A proxy that the models are bound to, for the database of the thread's unit."""

    @property
    def obj(self) -> Database | None:
        """The database of this thread, None outside of units."""
        return _current.get()

    @obj.setter
    def obj(self, value: Database | None) -> None:
        """Ignore the None that Peewee sets at initialisation; threads use `bind`."""


def bind(database: Database) -> None:
    """Bind the models to this database on the current thread."""
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
    """Run the unit in the open transaction, in which Peewee's `atomic` becomes a savepoint."""
    database.push_transaction(unit)
    try:
        result = unit()
    finally:
        database.pop_transaction()
    if isinstance(result, BaseQuery):
        raise TypeError("a unit must return rows, not a query that would run outside of it")
    return result


def current() -> Database:
    """Return the database of the running unit."""
    database = _current.get()
    if database is None:
        raise RuntimeError("store functions must run in a unit of Store.read or Store.write")
    return database


def savepoint() -> AbstractContextManager[Any]:
    """Return a savepoint, for a statement that may violate a constraint."""
    point: AbstractContextManager[Any] = current().savepoint()
    return point
