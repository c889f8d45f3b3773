"""Bind the models to the database whose unit of work runs on the current thread."""

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
    """A proxy for the database of the current unit of work. All models are bound to it."""

    @property
    def obj(self) -> Database | None:
        """The database that is bound to the current thread, or None."""
        return _current.get()

    @obj.setter
    def obj(self, value: Database | None) -> None:
        """Ignore the None that Peewee sets on initialization. Use `bind` to set the database."""


def bind(database: Database) -> None:
    """Bind the models to `database` on the current thread."""
    _current.set(database)


@contextmanager
def bound(database: Database) -> Iterator[None]:
    """Bind the models to `database` for the `with` block."""
    token = _current.set(database)
    try:
        yield
    finally:
        _current.reset(token)


def perform(database: Database, unit: Callable[[], T]) -> T:
    """Run the unit of work in the open transaction. Inside it, Peewee's `atomic` creates a savepoint."""
    database.push_transaction(unit)
    try:
        result = unit()
    finally:
        database.pop_transaction()
    if isinstance(result, BaseQuery):
        raise TypeError("a unit of work must return rows, not a query that would run after its end")
    return result


def current() -> Database:
    """Return the database of the current unit of work."""
    database = _current.get()
    if database is None:
        raise RuntimeError("store functions must run in a unit of Store.read or Store.write")
    return database


def savepoint() -> AbstractContextManager[Any]:
    """Return a context manager for a statement that may violate a constraint: an error undoes only this statement."""
    point: AbstractContextManager[Any] = current().savepoint()
    return point
