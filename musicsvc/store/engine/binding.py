"""The database that the models are bound to: that of the unit of work which runs on this thread."""

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
    """What the models are bound to: the database of the store thread that runs the unit."""

    @property
    def obj(self) -> Database | None:
        """The database of this thread, None outside a unit."""
        return _current.get()

    @obj.setter
    def obj(self, value: Database | None) -> None:
        """Peewee's own initialisation sets None; a thread is bound by `bind` alone."""


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
