"""PostgreSQL through psycopg: a pool of threads, a connection each, checked before and renewed after a fault."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import peewee
import psycopg
from psycopg import errors as pg

from musicsvc.errors import Unavailable
from musicsvc.store.database import Store, bind

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
READERS = 4
WRITERS = 4
ATTEMPTS = 4
OPTIONS = "-c lock_timeout=5000 -c idle_in_transaction_session_timeout=60000 -c timezone=UTC"
AGAIN = (pg.SerializationFailure, pg.DeadlockDetected)
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"


class PostgresDatabase(peewee.PostgresqlDatabase):
    """Peewee over psycopg 3; knows the connections of all its threads, so that they can be closed together."""

    def __init__(self, url: str) -> None:
        super().__init__(url, prefer_psycopg3=True, options=OPTIONS, connect_timeout=5)
        self._opened: list[psycopg.Connection[object]] = []

    def _connect(self) -> psycopg.Connection[object]:
        connection: psycopg.Connection[object] = super()._connect()  # type: ignore[misc]  # the stubs leave it out
        self._opened = [other for other in self._opened if not other.closed] + [connection]
        return connection

    def close_all(self) -> None:
        """Close the connections of every thread; none may be in use."""
        while self._opened:
            self._opened.pop().close()


class PostgresStore(Store):
    """One PostgreSQL database."""

    def __init__(self, url: str) -> None:
        """Take the address; raises Unavailable where no server answers there."""
        self.url = url
        self._database = PostgresDatabase(url.replace("postgres://", "postgresql://", 1))
        self._readers = ThreadPoolExecutor(READERS, "store-read", initializer=bind, initargs=(self._database,))
        self._writers = ThreadPoolExecutor(WRITERS, "store-write", initializer=bind, initargs=(self._database,))

    def read(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on a reader thread, in one snapshot."""
        return self._readers.submit(self._run, unit, READ)

    def write(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on a writer thread; rows whose order matters are locked by the store function."""
        return self._writers.submit(self._run, unit, WRITE)

    def _run(self, unit: Callable[[], T], begin: str) -> T:
        """Run the unit; once more where the server asks for it or the connection died before the commit was sent."""
        for attempt in range(ATTEMPTS):
            try:
                result = self._attempt(unit, begin)
            except (peewee.PeeweeException, psycopg.Error) as error:
                if not self._passes(error) or attempt == ATTEMPTS - 1:
                    raise translate(error) from error
            else:
                self._commit()
                return result
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _attempt(self, unit: Callable[[], T], begin: str) -> T:
        try:
            self._database.connect(reuse_if_open=True)
            self._database.execute_sql(begin)
            return unit()
        except BaseException:
            self._reset()
            raise

    def _commit(self) -> None:
        try:
            self._database.execute_sql("COMMIT")
        except (peewee.PeeweeException, psycopg.Error) as error:
            # Whether it was committed is not known, so it is not tried again.
            self._reset()
            raise translate(error) from error

    def _reset(self) -> None:
        """Roll back; a connection that cannot is closed, and the next unit opens another."""
        with suppress(peewee.PeeweeException, psycopg.Error):
            if not self._database.is_closed():
                self._database.execute_sql("ROLLBACK")
                return
        with suppress(peewee.PeeweeException, psycopg.Error):
            self._database.close()

    def _passes(self, error: BaseException) -> bool:
        inner = driver_error(error)
        dead = isinstance(inner, psycopg.OperationalError) and inner.sqlstate is None
        return isinstance(inner, (*AGAIN, pg.AdminShutdown, pg.CrashShutdown)) or dead

    def changes(self) -> None:
        """PostgreSQL has no cheap change counter; nothing is cached over it."""

    def close(self) -> None:
        """Finish the units under way and close the connections."""
        self._readers.shutdown(wait=True)
        self._writers.shutdown(wait=True)
        self._database.close_all()


def driver_error(error: BaseException) -> psycopg.Error | None:
    """The error of psycopg behind one of Peewee's, None where there is none."""
    if isinstance(error, psycopg.Error):
        return error
    inner = error.args[0] if isinstance(error, peewee.PeeweeException) and error.args else None
    return inner if isinstance(inner, psycopg.Error) else None


def translate(error: BaseException) -> BaseException:
    """Unavailable for what a lock, the disk or the connection did, else the error as it came."""
    inner = driver_error(error)
    if isinstance(inner, (psycopg.OperationalError, psycopg.InterfaceError, pg.ReadOnlySqlTransaction)):
        return Unavailable()
    return error
