"""PostgreSQL through psycopg: a pool of threads, a connection each, checked before and renewed after a fault."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, NoReturn, TypeVar

import peewee
import psycopg
from psycopg import conninfo
from psycopg import errors as pg

from musicsvc.errors import Failure, Unavailable
from musicsvc.store.engine.binding import bind, perform
from musicsvc.store.engine.store import Store, Workload, enqueue, queued
from musicsvc.store.engine.url import describe

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
READERS = 4
WRITERS = 4
ATTEMPTS = 4
PAUSE_SECONDS = 0.01
OPTIONS = "-c lock_timeout=5000 -c idle_in_transaction_session_timeout=60000 -c timezone=UTC"
ERRORS = (peewee.PeeweeException, psycopg.Error)  # Peewee leaves a few errors of the driver as they are
AGAIN = (
    pg.SerializationFailure,
    pg.DeadlockDetected,
    pg.AdminShutdown,
    pg.CrashShutdown,
    pg.ReadOnlySqlTransaction,  # a former primary: the next connection finds the new one
)
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"


class PostgresDatabase(peewee.PostgresqlDatabase):
    """Peewee over psycopg 3; knows the connections of all its threads, so that they can be closed together."""

    def __init__(self, url: str) -> None:
        """Take the address, whose own options stand above ours; raises Failure where it cannot be read."""
        url = url.replace("postgres://", "postgresql://", 1)
        try:
            given = conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise Failure("The database address cannot be read (setting database_url).") from None
        options = f"{OPTIONS} {given.get('options', '')}"
        super().__init__(url, prefer_psycopg3=True, options=options, connect_timeout=given.get("connect_timeout", 5))
        # Peewee opens one connection at a time; threads that wait for a server which is gone shall not wait in a row.
        self._lock = nullcontext()
        self._opened: list[psycopg.Connection[object]] = []
        self._opening = threading.Lock()

    def _connect(self) -> psycopg.Connection[object]:
        connection: psycopg.Connection[object] = super()._connect()  # type: ignore[misc]  # the stubs leave it out
        with self._opening:
            self._opened = [other for other in self._opened if not other.closed] + [connection]
        return connection

    def close_all(self) -> None:
        """Close the connections of every thread; none may be in use."""
        with self._opening:
            while self._opened:
                self._opened.pop().close()


class PostgresStore(Store):
    """One PostgreSQL database."""

    def __init__(self, url: str) -> None:
        """Take the address; a unit is Unavailable while no server answers there."""
        self.url = url
        self.workload = Workload()
        self._counting = threading.Lock()
        self._database = PostgresDatabase(url)
        self._readers = ThreadPoolExecutor(READERS, "store-read", initializer=bind, initargs=(self._database,))
        self._writers = ThreadPoolExecutor(WRITERS, "store-write", initializer=bind, initargs=(self._database,))

    def read(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on a reader thread, in one snapshot."""
        return enqueue(self._readers, self._run, unit, READ)

    def write(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on a writer thread; rows whose order matters are locked by the store function."""
        return enqueue(self._writers, self._run, unit, WRITE)

    def _run(self, unit: Callable[[], T], begin: str) -> T:
        """Run the unit; once more where the server asks for it or the connection died before the commit was sent."""
        for attempt in range(1, ATTEMPTS + 1):
            self._connect()
            try:
                result = self._attempt(unit, begin)
            except ERRORS as error:
                self._reset(renew=isinstance(driver_error(error), pg.ReadOnlySqlTransaction))
                if attempt == ATTEMPTS or not _passes(error, begin):
                    _fail(error, begin)
                time.sleep(attempt * PAUSE_SECONDS)
            except BaseException:
                self._reset()
                raise
            else:
                began = time.monotonic()
                self._commit()
                if begin == WRITE:
                    with self._counting:
                        self.workload.add(1, time.monotonic() - began)
                return result
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _connect(self) -> None:
        try:
            self._database.connect(reuse_if_open=True)
        except ERRORS as error:
            raise Unavailable(here=f"{describe(self.url)} does not accept connections: {_reason(error)}.") from error

    def _attempt(self, unit: Callable[[], T], begin: str) -> T:
        self._database.execute_sql(begin)
        result = perform(self._database, unit)
        if self._database.connection().info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
            # COMMIT would roll back and say nothing.
            raise RuntimeError("a unit went on after a statement that failed; such a statement needs a savepoint")
        return result

    def _commit(self) -> None:
        try:
            self._database.execute_sql("COMMIT")
        except ERRORS as error:
            # Whether it was committed is not known, so it is not tried again.
            self._reset()
            _fail(error, WRITE)

    def _reset(self, *, renew: bool = False) -> None:
        """Roll back; a connection that cannot, or is to be renewed, is closed, and the next unit opens another."""
        with suppress(*ERRORS):
            self._database.execute_sql("ROLLBACK")
            if not renew:
                return
        with suppress(*ERRORS):
            self._database.close()

    def changes(self) -> None:
        """PostgreSQL has no cheap change counter; nothing is cached over it."""

    def waiting(self) -> tuple[int, int]:
        """How many units wait to read, and how many to write."""
        return queued(self._readers), queued(self._writers)

    def close(self) -> None:
        """Finish the units under way and close the connections."""
        self._readers.shutdown(wait=True)
        self._writers.shutdown(wait=True)
        self._database.close_all()


def driver_error(error: BaseException) -> psycopg.Error | None:
    """The error of psycopg behind one of Peewee's, None where there is none."""
    if isinstance(error, psycopg.Error):
        return error
    inner = getattr(error, "orig", None)
    return inner if isinstance(inner, psycopg.Error) else None


def translate(error: BaseException) -> BaseException:
    """Unavailable for what a lock, the disk or the connection did, Peewee's error for a constraint."""
    inner = driver_error(error)
    if isinstance(inner, (psycopg.OperationalError, psycopg.InterfaceError, pg.ReadOnlySqlTransaction)):
        return Unavailable(here=f"The database is busy or cannot be used: {_reason(inner)}.")
    if isinstance(error, psycopg.IntegrityError):
        return peewee.IntegrityError(error, str(error))
    return error


def _reason(error: BaseException) -> str:
    """The error of the server or the driver, as far as it says what failed, in one line."""
    return " ".join(str(error).partition("DETAIL:")[0].split()).rstrip(".")


def _passes(error: Exception, begin: str) -> bool:
    """Whether the unit may succeed when it is run again; it cannot have been committed."""
    inner = driver_error(error)
    if _wrote_while_reading(inner, begin):
        return False
    dead = isinstance(inner, psycopg.OperationalError) and inner.sqlstate is None
    return dead or isinstance(inner, AGAIN)


def _wrote_while_reading(inner: psycopg.Error | None, begin: str) -> bool:
    """Whether a reading unit tried to write, which is a mistake of ours and not of the server."""
    return begin == READ and isinstance(inner, pg.ReadOnlySqlTransaction)


def _fail(error: Exception, begin: str) -> NoReturn:
    failure = translate(error)
    if failure is error or _wrote_while_reading(driver_error(error), begin):
        raise error
    raise failure from error
