"""Run transactions in PostgreSQL through psycopg. Each unit of work takes a connection of the process."""

import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import psycopg
from psycopg import errors as pg

from musicsvc.errors import Unavailable
from musicsvc.store.engine.name_index import index_changed_names
from musicsvc.store.engine.postgres.changes import MAX_AGE, ChangeWatch, default_folder, mark, marks_file
from musicsvc.store.engine.postgres.connections import CONNECTIONS, PATIENCE_SECONDS
from musicsvc.store.engine.postgres.database import (
    ERRORS,
    LOCK_SECONDS,
    READ,
    WRITE,
    PostgresDatabase,
    Task,
    driver_error,
    reason,
    refused,
    translate,
)
from musicsvc.store.engine.postgres.waiting import Limits, NoResponse, limited
from musicsvc.store.engine.sql import T, bind, following, perform
from musicsvc.store.engine.store import Store, Workload, enqueue, queued
from musicsvc.store.engine.tables import noting

READERS = 6
WRITERS = 4
URGENT = 3  # threads for revocations, health checks and rate limits, which wait for no other unit
PATIENT = 2
MOST_PATIENT = 64  # units that may wait for locks
ATTEMPTS = 4
PAUSE_SECONDS = 0.01
BEGIN_SECONDS = 6.0  # for a unit without a deadline to begin
COMMIT_SECONDS = 60.0  # for the COMMIT of a unit without a deadline
LEAST_COMMIT_SECONDS = 1.0  # for that of a unit with one
SHARED_LOCK_SECONDS = 0.25  # wait for a lock on the threads that all units share
BUSY_LOCK_SECONDS = 0.025  # the same while other units wait for locks
PROBE_SECONDS = 1.0  # between two writes of health checks
RETRYABLE = (
    pg.SerializationFailure,
    pg.DeadlockDetected,
    pg.ForeignKeyViolation,  # the row was deleted meanwhile, which the repeated unit finds
    pg.UniqueViolation,  # the same of a row that was inserted
    pg.AdminShutdown,
    pg.CrashShutdown,
    pg.IdleSessionTimeout,
    pg.ReadOnlySqlTransaction,  # the server is no longer the primary; a new connection finds the current primary
)
# Concurrent transactions advance different rows, so that they need not wait for each other. It returns the number of
# the schema.
ADVANCE = """
    INSERT INTO table_version (slot, name, number) SELECT mod(pg_backend_pid(), 16), unnest(%s::text[]), 1
    ON CONFLICT (slot, name) DO UPDATE SET number = table_version.number + 1
    RETURNING (SELECT max(name) FROM schema_migration)
"""
UNCONFIRMED = "The database did not confirm the change. It may have been stored."
PROBE = "health_check"  # a name in `table_version` that is no table
# Needs some pages of the disk, while a change of one row may find room in the last one.
FILL = """
    INSERT INTO table_version (slot, name, number)
    SELECT -1, number || repeat(' ', 1900), 0 FROM generate_series(1, 100) AS number
"""


class PostgresStore(Store):
    parallel_reads = READERS  # each waits for the server
    lag = MAX_AGE + 0.1

    def __init__(
        self,
        url: str,
        folder: Path | None = None,
        connections: int | None = None,
        shared: tuple[PostgresDatabase, ChangeWatch] | None = None,
    ) -> None:
        """Create the threads, which connect on first use. Raises Failure if the URL is malformed.

        `folder`: for the files by which processes of this machine detect each other's commits. `connections`: the most
        connections of all threads. `shared`: those of the store beside this one.
        """
        self.url = url
        self.workload = Workload()
        self._workload_lock = threading.Lock()
        self._is_beside = shared is not None
        self._folder = folder or default_folder()
        if shared is None:
            database = PostgresDatabase(url, connections or CONNECTIONS)
            shared = database, ChangeWatch(database, self._folder)
        self._database, self._watch = shared
        self.connections = self._database.connections.use
        self._random = Random()  # noqa: S311 - numbers of changes, no secrets
        self._marks_file: Path | None = None
        self._readers = self._threads(1 if self._is_beside else READERS, "store-read")
        self._writers = self._threads(1 if self._is_beside else WRITERS, "store-write")
        self._urgent = self._threads(URGENT, "store-urgent", urgent=True)
        # While they wait, most connections are free for others.
        self._patient = self._threads(PATIENT if self.connections.budget > 3 * PATIENT else 1, "store-locks")
        self._waiting_for_locks: set[Task[Any]] = set()
        self._probed = -inf
        self._disk_was_full = True  # until the first health check has tried it

    def _threads(self, number: int, name: str, *, urgent: bool = False) -> ThreadPoolExecutor:
        def begin() -> None:
            bind(self._database)
            if urgent:
                self._database.be_urgent()

        return ThreadPoolExecutor(number, name, initializer=begin)

    def beside(self) -> "PostgresStore":
        return PostgresStore(self.url, self._folder, shared=(self._database, self._watch))

    def read(self, unit: Callable[[], T], *, within: float | None = None, patient: bool = True) -> Future[T]:
        return self._enqueue(self._readers, Task(unit, READ, within, patient=patient))

    def write(
        self,
        unit: Callable[[], T],
        *,
        urgent: bool = False,
        counters_only: bool = False,
        within: float | None = None,
    ) -> Future[T]:
        """Call `unit` in a transaction on one of several writer threads. `unit` must lock the rows that it changes."""
        threads = self._urgent if urgent else self._writers
        return self._enqueue(threads, Task(unit, WRITE, within, versions=not counters_only))

    def probe(self, unit: Callable[[], T], *, within: float) -> Future[T]:
        """Call `unit` and write, if the last write of a health check was a second ago."""
        if time.monotonic() - self._probed < PROBE_SECONDS and not self._disk_was_full:
            return self._enqueue(self._urgent, Task(unit, READ, within))
        task = Task(partial(self._write_and_call, unit), WRITE, within)
        task.future.add_done_callback(self._note_probe)
        return self._enqueue(self._urgent, task)

    def _write_and_call(self, unit: Callable[[], T]) -> T:
        self._database.execute_sql(ADVANCE, ([PROBE],))
        if self._disk_was_full:
            with self._database.savepoint() as savepoint:
                self._database.execute_sql(FILL)
                savepoint.rollback()
        return unit()

    def _note_probe(self, done: Future[Any]) -> None:
        if not done.cancelled() and done.exception() is None:
            self._probed, self._disk_was_full = time.monotonic(), False

    def _enqueue(self, threads: ThreadPoolExecutor, task: Task[T]) -> Future[T]:
        try:
            enqueue(threads, self._perform, task)
        except Unavailable:
            if task.future.cancel():  # else a busy thread has taken it
                raise
        return task.future

    def _perform(self, task: Task[T]) -> None:
        """Complete the future of a task. If a lock is in its way, pass it on to the threads for such tasks."""
        if task.future.done() or (task.locked_until is None and not task.future.set_running_or_notify_cancel()):
            return
        try:
            with following() as units:
                result = self._run(task)
        except Unavailable as failure:
            if not self._pass_on(task, failure):
                task.future.set_exception(failure)
        except BaseException as error:  # noqa: BLE001 - any exception belongs to the unit's caller
            task.future.set_exception(error)
        else:
            self._complete(task, result, units)

    def _complete(self, task: Task[T], result: T, units: Collection[Callable[[], bool]]) -> None:
        """Run the units that the committed unit of a task has passed to `sql.then`, and complete its future."""
        try:
            for each in units:
                self._follow(task, each)
        except BaseException as error:  # noqa: BLE001 - the same
            task.future.set_exception(error)
        else:
            task.future.set_result(result)

    def _follow(self, task: Task[Any], unit: Callable[[], bool]) -> None:
        """Run the unit in transactions until it returns True, with growing pauses. Raises Unavailable in the end."""
        ends, pause = min(task.deadline, time.monotonic() + BEGIN_SECONDS), PAUSE_SECONDS
        while True:
            time.sleep(pause)
            try:
                if self._run(Task(unit, WRITE, ends - time.monotonic(), versions=task.versions)):
                    return
            except Unavailable as failure:
                if time.monotonic() > ends or not isinstance(driver_error(failure.__cause__), pg.LockNotAvailable):
                    raise Unavailable(UNCONFIRMED, here=failure.here) from failure
            pause *= 1.5

    def _pass_on(self, task: Task[T], failure: Unavailable) -> bool:
        """Let a task that failed at a lock wait for it on other threads. Return False if it must not wait."""
        is_locked = isinstance(driver_error(failure.__cause__), pg.LockNotAvailable)
        if not (is_locked and task.patient) or task.locked_until is not None:
            return False
        if len(self._waiting_for_locks) >= MOST_PATIENT:
            return False
        task.locked_until = time.monotonic() + LOCK_SECONDS
        self._waiting_for_locks.add(task)
        try:
            enqueue(self._patient, self._perform_patiently, task)
        except Unavailable:
            self._waiting_for_locks.discard(task)
            return False
        return True

    def _perform_patiently(self, task: Task[T]) -> None:
        try:
            self._perform(task)
        finally:
            self._waiting_for_locks.discard(task)

    def _run(self, task: Task[T]) -> T:
        """Run the unit on a connection, which other units use afterwards."""
        with limited(Limits(responds=self._watch.check)) as limits:
            try:
                return self._run_within(task, limits)
            finally:
                self._database.close()

    def _run_within(self, task: Task[T], limits: Limits) -> T:
        """Begin a transaction, call the unit, and commit. Conflicts and faults before COMMIT cause a retry."""
        for attempt in range(1, ATTEMPTS + 1):
            self._connect(task, limits)
            try:
                with noting() as statements:
                    result = self._attempt(task, limits)
                    if task.begin == WRITE:
                        index_changed_names(statements)
                changed = self._advance(statements) if task.versions else ()
            except ERRORS as error:
                self._disk_was_full |= isinstance(driver_error(error), pg.DiskFull)
                self._reset(renew=isinstance(driver_error(error), pg.ReadOnlySqlTransaction))
                if attempt == ATTEMPTS or not _is_retryable(error, task.begin):
                    _fail(error, task.begin)
                time.sleep(attempt * PAUSE_SECONDS)
            except BaseException:
                self._reset()
                raise
            else:
                self._commit(task, limits, changed)
                return result
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _connect(self, task: Task[Any], limits: Limits) -> None:
        """Connect if necessary. Raises Unavailable if that fails, or if the task has waited too long to begin."""
        now = time.monotonic()
        if now > (task.deadline if task.locked_until is None else min(task.deadline, task.locked_until)):
            raise Unavailable(here="The database is busy: a request waited too long for a connection or a lock.")
        limits.deadline = min(task.deadline, now + PATIENCE_SECONDS)
        try:
            if not self._watch.responds():
                raise NoResponse("it does not respond")
            self._database.connect(reuse_if_open=True)
        except ERRORS as error:
            raise refused(self.url, error) from error

    def _attempt(self, task: Task[T], limits: Limits) -> T:
        limits.deadline = min(task.deadline, time.monotonic() + BEGIN_SECONDS)
        self._database.execute_sql(task.begin_statement(self._lock_seconds()))
        limits.deadline = task.deadline
        result = perform(self._database, task.unit)
        if self._database.connection().info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
            # COMMIT would roll back silently.
            raise RuntimeError("a statement of this unit of work failed outside a savepoint, so it cannot be committed")
        return result

    def _lock_seconds(self) -> float:
        """Return how long a unit may wait for a lock on the threads that all units share."""
        return BUSY_LOCK_SECONDS if self._waiting_for_locks else SHARED_LOCK_SECONDS

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

    def _commit(self, task: Task[Any], limits: Limits, changed: Collection[str]) -> None:
        """Commit. The task is not retried if that fails, because it may have been committed."""
        began = time.monotonic()
        limits.deadline = max(task.deadline, began + LEAST_COMMIT_SECONDS) if task.within else began + COMMIT_SECONDS
        try:
            self._database.execute_sql("COMMIT")
        except ERRORS as error:
            self._reset()
            if task.begin == READ:
                return  # its result is complete
            if isinstance(driver_error(error), psycopg.OperationalError):
                raise Unavailable(UNCONFIRMED, here=f"COMMIT was not confirmed: {reason(error)}.") from error
            _fail(error, WRITE)
        if task.begin == WRITE:
            with self._workload_lock:
                self.workload.add(1, time.monotonic() - began)
            if changed and self._marks_file is not None:
                mark(self._marks_file, changed, self._random.getrandbits(64))

    def _reset(self, *, renew: bool = False) -> None:
        """Roll back. If that fails or `renew` is set, close the connection; the next transaction opens a new one."""
        with suppress(*ERRORS):
            self._database.execute_sql("ROLLBACK")
            if not renew:
                return
        with suppress(*ERRORS):
            self._database.discard()

    def changes(self) -> Hashable | None:
        return self._watch.changes()

    def table_versions(self) -> Mapping[str, Hashable]:
        return self._watch.table_versions()

    def others(self) -> Hashable:
        return self._watch.others()

    def waiting(self) -> tuple[int, int]:
        return queued(self._readers), queued(self._writers)

    def close(self) -> None:
        if self.replica is not None:
            self.replica.close()
        if not self._is_beside:
            self._watch.close()
        for threads in (self._readers, self._writers, self._urgent, self._patient):  # the others pass on to the last
            threads.shutdown(wait=True)
        if not self._is_beside:
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
