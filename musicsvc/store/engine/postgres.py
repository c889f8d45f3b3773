"""Run transactions in PostgreSQL through psycopg. Each thread has one connection, which is reopened after a fault."""

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
SESSION_OPTIONS = "-c lock_timeout=5000 -c idle_in_transaction_session_timeout=60000 -c timezone=UTC"
ERRORS = (peewee.PeeweeException, psycopg.Error)  # Peewee does not wrap all errors of the driver
RETRYABLE = (
    pg.SerializationFailure,
    pg.DeadlockDetected,
    pg.AdminShutdown,
    pg.CrashShutdown,
    pg.ReadOnlySqlTransaction,  # the server is no longer the primary; a new connection finds the current primary
)
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"


class PostgresDatabase(peewee.PostgresqlDatabase):
    """Peewee's PostgreSQL database on psycopg 3, with one connection per thread."""

    def __init__(self, url: str) -> None:
        """Set the connection options. Options in the URL take precedence. Raises Failure if the URL is malformed."""
        url = url.replace("postgres://", "postgresql://", 1)
        try:
            given = conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise Failure("The database address cannot be read (setting database_url).") from None
        options = f"{SESSION_OPTIONS} {given.get('options', '')}"
        super().__init__(url, prefer_psycopg3=True, options=options, connect_timeout=given.get("connect_timeout", 5))
        # Peewee opens connections one at a time. Threads must not queue for a server that does not answer.
        self._lock = nullcontext()
        self._connections: list[psycopg.Connection[object]] = []
        self._connections_lock = threading.Lock()

    def _connect(self) -> psycopg.Connection[object]:
        connection: psycopg.Connection[object] = super()._connect()  # type: ignore[misc]  # missing in the stubs
        with self._connections_lock:
            self._connections = [other for other in self._connections if not other.closed] + [connection]
        return connection

    def close_all(self) -> None:
        """Close the connections of all threads. No thread may be using its connection."""
        with self._connections_lock:
            while self._connections:
                self._connections.pop().close()


class PostgresStore(Store):
    def __init__(self, url: str) -> None:
        """Create reader and writer threads, which connect on first use. Raises Failure if the URL is malformed."""
        self.url = url
        self.workload = Workload()
        self._workload_lock = threading.Lock()
        self._database = PostgresDatabase(url)
        self._readers = ThreadPoolExecutor(READERS, "store-read", initializer=bind, initargs=(self._database,))
        self._writers = ThreadPoolExecutor(WRITERS, "store-write", initializer=bind, initargs=(self._database,))

    def read(self, unit: Callable[[], T]) -> Future[T]:
        return enqueue(self._readers, self._run, unit, READ)

    def write(self, unit: Callable[[], T]) -> Future[T]:
        """Call `unit` in a transaction on one of several writer threads. `unit` must lock the rows that it changes."""
        return enqueue(self._writers, self._run, unit, WRITE)

    def _run(self, unit: Callable[[], T], begin: str) -> T:
        """Run the statement `begin`, call `unit`, and commit. Conflicts and faults before COMMIT cause a retry."""
        for attempt in range(1, ATTEMPTS + 1):
            self._connect()
            try:
                result = self._attempt(unit, begin)
            except ERRORS as error:
                self._reset(renew=isinstance(driver_error(error), pg.ReadOnlySqlTransaction))
                if attempt == ATTEMPTS or not _is_retryable(error, begin):
                    _fail(error, begin)
                time.sleep(attempt * PAUSE_SECONDS)
            except BaseException:
                self._reset()
                raise
            else:
                began = time.monotonic()
                self._commit()
                if begin == WRITE:
                    with self._workload_lock:
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
            # COMMIT would roll back silently.
            raise RuntimeError("a statement of this unit of work failed outside a savepoint, so it cannot be committed")
        return result

    def _commit(self) -> None:
        try:
            self._database.execute_sql("COMMIT")
        except ERRORS as error:
            # The unit may have been committed, so it is not retried.
            self._reset()
            _fail(error, WRITE)

    def _reset(self, *, renew: bool = False) -> None:
        """Roll back. If that fails or `renew` is set, close the connection; the next transaction opens a new one."""
        with suppress(*ERRORS):
            self._database.execute_sql("ROLLBACK")
            if not renew:
                return
        with suppress(*ERRORS):
            self._database.close()

    def changes(self) -> None:
        """Return None: PostgreSQL has no counter of commits that is cheap to read."""

    def waiting(self) -> tuple[int, int]:
        return queued(self._readers), queued(self._writers)

    def close(self) -> None:
        self._readers.shutdown(wait=True)
        self._writers.shutdown(wait=True)
        self._database.close_all()


def driver_error(error: BaseException) -> psycopg.Error | None:
    """Return `error` if it is a psycopg error, or the psycopg error that Peewee wrapped in it, else None."""
    if isinstance(error, psycopg.Error):
        return error
    inner = getattr(error, "orig", None)
    return inner if isinstance(inner, psycopg.Error) else None


def translate(error: BaseException) -> BaseException:
    """Return Unavailable for a server fault, Peewee's IntegrityError for a violated constraint, else `error` itself."""
    inner = driver_error(error)
    if isinstance(inner, (psycopg.OperationalError, psycopg.InterfaceError, pg.ReadOnlySqlTransaction)):
        return Unavailable(here=f"The database is busy or cannot be used: {_reason(inner)}.")
    if isinstance(error, psycopg.IntegrityError):
        return peewee.IntegrityError(error, str(error))
    return error


def _reason(error: BaseException) -> str:
    """Return the error message in one line, without PostgreSQL's DETAIL section."""
    return " ".join(str(error).partition("DETAIL:")[0].split()).rstrip(".")


def _is_retryable(error: Exception, begin: str) -> bool:
    """Return True if a transaction, begun with the statement `begin`, may succeed when repeated after `error`."""
    inner = driver_error(error)
    if _wrote_while_reading(inner, begin):
        return False
    dead = isinstance(inner, psycopg.OperationalError) and inner.sqlstate is None
    return dead or isinstance(inner, RETRYABLE)


def _wrote_while_reading(inner: psycopg.Error | None, begin: str) -> bool:
    """Return True if a read-only transaction tried to write, which is a programming error and not a server fault."""
    return begin == READ and isinstance(inner, pg.ReadOnlySqlTransaction)


def _fail(error: Exception, begin: str) -> NoReturn:
    failure = translate(error)
    if failure is error or _wrote_while_reading(driver_error(error), begin):
        raise error
    raise failure from error
