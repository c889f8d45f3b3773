"""Run transactions in PostgreSQL through psycopg. Each thread has one connection, which is reopened after a fault."""

import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NoReturn, TypeVar

import psycopg
from psycopg import errors as pg

from musicsvc.errors import Unavailable
from musicsvc.store.engine.name_index import index_changed_names
from musicsvc.store.engine.postgres.changes import ChangeWatch, default_folder, mark, marks_file
from musicsvc.store.engine.postgres.database import (
    ERRORS,
    TRANSACTION_SETTINGS,
    PostgresDatabase,
    driver_error,
    reason,
    translate,
)
from musicsvc.store.engine.sql import bind, perform
from musicsvc.store.engine.store import Store, Workload, enqueue, queued
from musicsvc.store.engine.tables import noting
from musicsvc.store.engine.url import describe

T = TypeVar("T")
READERS = 6
WRITERS = 4
ATTEMPTS = 4
PAUSE_SECONDS = 0.01
RETRYABLE = (
    pg.SerializationFailure,
    pg.DeadlockDetected,
    pg.ForeignKeyViolation,  # the row was deleted meanwhile, which the repeated unit finds
    pg.AdminShutdown,
    pg.CrashShutdown,
    pg.ReadOnlySqlTransaction,  # the server is no longer the primary; a new connection finds the current primary
)
READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {TRANSACTION_SETTINGS}"
WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED; {TRANSACTION_SETTINGS}"
# Concurrent transactions advance different rows, so that they need not wait for each other. It returns the number of
# the schema.
ADVANCE = """
    INSERT INTO table_version (slot, name, number) SELECT mod(pg_backend_pid(), 16), unnest(%s::text[]), 1
    ON CONFLICT (slot, name) DO UPDATE SET number = table_version.number + 1
    RETURNING (SELECT max(name) FROM schema_migration)
"""


class PostgresStore(Store):
    parallel_reads = READERS  # each waits for the server

    def __init__(self, url: str, folder: Path | None = None) -> None:
        """Create reader and writer threads, which connect on first use. Raises Failure if the URL is malformed.

        `folder`: for the files by which processes of this machine detect each other's commits.
        """
        self.url = url
        self.workload = Workload()
        self._workload_lock = threading.Lock()
        self._database = PostgresDatabase(url)
        self._folder = folder or default_folder()
        self._watch = ChangeWatch(self._database, self._folder)
        self._random = Random()  # noqa: S311 - numbers of changes, no secrets
        self._marks_file: Path | None = None
        self._readers = ThreadPoolExecutor(READERS, "store-read", initializer=bind, initargs=(self._database,))
        self._writers = ThreadPoolExecutor(WRITERS, "store-write", initializer=bind, initargs=(self._database,))

    def read(self, unit: Callable[[], T]) -> Future[T]:
        return enqueue(self._readers, self._run, unit, READ)

    def write(self, unit: Callable[[], T], *, urgent: bool = False, counters_only: bool = False) -> Future[T]:  # noqa: ARG002 - nothing is reserved
        """Call `unit` in a transaction on one of several writer threads. `unit` must lock the rows that it changes."""
        return enqueue(self._writers, self._run, unit, WRITE, not counters_only)

    def _run(self, unit: Callable[[], T], begin: str, versions: bool = False) -> T:  # noqa: FBT001, FBT002 - passed on by position
        """Run the statement `begin`, call `unit`, and commit. Conflicts and faults before COMMIT cause a retry.

        `versions`: whether to increment the version numbers of changed tables.
        """
        for attempt in range(1, ATTEMPTS + 1):
            self._connect()
            try:
                with noting() as statements:
                    result = self._attempt(unit, begin)
                    if begin == WRITE:
                        index_changed_names(statements)
                changed = self._advance(statements) if versions else ()
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
                    if changed and self._marks_file is not None:
                        mark(self._marks_file, changed, self._random.getrandbits(64))
                return result
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _connect(self) -> None:
        try:
            self._database.connect(reuse_if_open=True)
        except ERRORS as error:
            raise Unavailable(here=f"{describe(self.url)} does not accept connections: {reason(error)}.") from error

    def _attempt(self, unit: Callable[[], T], begin: str) -> T:
        self._database.execute_sql(begin)
        result = perform(self._database, unit)
        if self._database.connection().info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
            # COMMIT would roll back silently.
            raise RuntimeError("a statement of this unit of work failed outside a savepoint, so it cannot be committed")
        return result

    def _advance(self, statements: set[str]) -> Collection[str]:
        """Increment the version numbers of the tables that these statements change. Return the names of the tables.

        Changes of counters alone increment no number, to save a statement per play. `others` shows these changes.
        """
        tables = self._database.tables
        changed = tables.names & tables.all_changed(statements)
        if not changed or not tables.versioned:
            return ()
        ((schema,), *_) = self._database.execute_sql(ADVANCE, (sorted(changed),)).fetchall()
        # An upgrade by a newer version may have added tables meanwhile, in which a DELETE here has changed rows.
        tables = self._database.tables_of(schema)
        if further := tables.names & tables.all_changed(statements) - changed:
            self._database.execute_sql(ADVANCE, (sorted(further),))
            changed |= further
        if self._marks_file is None:
            self._marks_file = marks_file(self._folder, self._database.connection())
        return changed

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

    def changes(self) -> Hashable | None:
        return self._watch.changes()

    def table_versions(self) -> Mapping[str, Hashable]:
        return self._watch.table_versions()

    def others(self) -> Hashable:
        return self._watch.others()

    def waiting(self) -> tuple[int, int]:
        return queued(self._readers), queued(self._writers)

    def close(self) -> None:
        self._watch.close()
        self._readers.shutdown(wait=True)
        self._writers.shutdown(wait=True)
        self._database.close_all()


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
