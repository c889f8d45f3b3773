"""Run queued functions on SQLite's only writer thread: several in one transaction, each in its own savepoint.

A function that is alone in its transaction needs no savepoint.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import apsw

from musicsvc.errors import Unavailable
from musicsvc.store.engine.name_index import index_changed_names
from musicsvc.store.engine.sql import T, bind, perform
from musicsvc.store.engine.sqlite.files import BUSY_SECONDS, ERRORS, DiskFault, SqliteDatabase, driver_error, translate
from musicsvc.store.engine.sqlite.reserved_space import ReservedSpace
from musicsvc.store.engine.sqlite.scrubbing import Scrubbing
from musicsvc.store.engine.store import CLOSING, Workload
from musicsvc.store.engine.tables import counting, noting

GROUP = 128
POLL_MILLISECONDS = 50
# Between the transactions of long work others, who look for the lock every 25 ms, would hardly find it free.
TURN_SECONDS, PAUSE_SECONDS = 0.25, 0.03
ADVANCE = "INSERT INTO table_version VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET number = number + 1"


@dataclass(slots=True)
class Job:
    """A queued function `unit` with its future. An `urgent` one may use reserved disk space if the disk is full.

    `counters_only`: it changes nothing but counters and times of use, which are versioned separately.
    `loop`: the event loop of an asyncio future, which only that loop may complete; None for any other future.
    """

    unit: Callable[[], Any]
    deadline: float  # end of waiting for locks of other processes, in seconds of time.monotonic
    future: Future[Any] | asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop | None = None
    urgent: bool = False
    counters_only: bool = False
    result: Any = None
    error: BaseException | None = None
    settled: bool = False

    def start(self) -> bool:
        """Return False if the future was cancelled, so that the unit need not run."""
        if isinstance(self.future, Future):
            return self.future.set_running_or_notify_cancel()
        return not self.future.cancelled()

    def complete(self) -> None:
        """Complete the future with the result or the error, unless it was cancelled. Call this on its event loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def settle(jobs: Iterable[Job]) -> None:
    """Complete the futures of all jobs that are not settled. Each event loop is woken once for all of its jobs."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        if job.settled:
            continue
        job.settled = True
        if job.loop is None:
            job.complete()
        else:
            by_loop.setdefault(job.loop, []).append(job)
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed, so nothing waits for the futures
            loop.call_soon_threadsafe(complete_all, some)


def complete_all(jobs: Iterable[Job]) -> None:
    for job in jobs:
        job.complete()


class GroupWriter:
    """Runs queued functions on one thread. A function's future is done after the transaction committed or failed."""

    def __init__(
        self,
        database: SqliteDatabase,
        reserved: ReservedSpace,
        scrubbing: Scrubbing,
        reopen: Callable[[], None],
    ) -> None:
        """Start the thread. A queued function waits at most BUSY_SECONDS for database locks of other processes.

        `reopen`: called while its connection is closed, because SQLite has opened a file read-only.
        """
        self.workload = Workload()
        self._reopen = reopen
        self._reserved = reserved
        self._scrubbing = scrubbing
        self._database = database
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._turns: dict[asyncio.AbstractEventLoop, list[Job]] = {}  # the jobs of the current iteration of each loop
        self._closing_lock = threading.Lock()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="store-write", daemon=True)
        self._thread.start()

    def submit(self, unit: Callable[[], T], *, urgent: bool = False, counters_only: bool) -> Future[T]:
        """Queue `unit` and return its future. Raises Unavailable if the database is closing.

        An `urgent` unit may use reserved disk space. `counters_only`: it changes only counters and times of use.
        """
        future: Future[T] = Future()
        job = Job(unit, time.monotonic() + BUSY_SECONDS, future, urgent=urgent, counters_only=counters_only)
        with self._closing_lock:
            if self._closing:
                raise Unavailable(CLOSING)
            self._queue.put(job)
        return future

    def submit_on_loop(self, unit: Callable[[], T], *, counters_only: bool) -> asyncio.Future[T]:
        """Queue `unit` together with all other units of this iteration of the running event loop, which costs less."""
        loop = asyncio.get_running_loop()
        jobs = self._turns.get(loop)
        if jobs is None:
            jobs = self._turns[loop] = []
            loop.call_soon(self._end_turn, loop)
        future: asyncio.Future[T] = loop.create_future()
        jobs.append(Job(unit, 0.0, future, loop, counters_only=counters_only))
        return future

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        deadline = time.monotonic() + BUSY_SECONDS
        with self._closing_lock:
            for job in self._turns.pop(loop):
                job.deadline = deadline
                if self._closing:
                    job.error = Unavailable(CLOSING)
                    job.complete()
                else:
                    self._queue.put(job)

    def waiting(self) -> int:
        return self._queue.qsize()

    def close(self) -> None:
        """Run the queued functions, then close the connection and end the thread."""
        with self._closing_lock:
            if not self._closing:
                self._closing = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        bind(self._database)
        held = 0.0  # seconds of writing without a pause that no request has asked for
        while (first := self._queue.get()) is not None:
            began = time.monotonic()
            jobs = [job for job in self._drain(first) if job.start()]
            try:
                self._commit(jobs)
            except BaseException as error:  # noqa: BLE001 - if this thread ended, nothing would be written again
                self._abandon(jobs, error)
            held = 0.0 if any(job.loop for job in jobs) else held + time.monotonic() - began
            if held > TURN_SECONDS:
                time.sleep(PAUSE_SECONDS)
                held = 0.0
        self._database.close_all()

    def _drain(self, first: Job) -> list[Job]:
        jobs = [first]
        while len(jobs) < GROUP:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._queue.put(None)
                break
            jobs.append(job)
        return jobs

    def _commit(self, jobs: list[Job]) -> None:
        begun = self._begin(jobs)
        if begun and self._attempt(begun):
            # The whole group was rolled back. Each unit is retried alone, so that only the faulty one fails.
            for job in begun:
                self._commit_alone(job)
        settle(begun)

    def _commit_alone(self, job: Job) -> None:
        for begun in self._begin([job]):
            begun.error = self._attempt([begun]) or begun.error
            if self._release_space([begun], begun.error):
                self._commit_alone(begun)
                self._reserved.refill()
            settle([begun])

    def _release_space(self, jobs: list[Job], error: BaseException | None) -> bool:
        """Free reserved disk space if an urgent job failed on a full disk. Return True if space was freed."""
        return isinstance(error, DiskFault) and any(job.urgent for job in jobs) and self._reserved.release()

    def _begin(self, jobs: list[Job]) -> list[Job]:
        """Begin a transaction once no other process writes. Return the jobs, except those that failed while waiting."""
        while jobs:
            try:
                self._database.require_in_place()
                if self._database.connect(reuse_if_open=True):
                    self._connection.set_busy_timeout(POLL_MILLISECONDS)
                if self._connection.readonly("main"):  # BEGIN IMMEDIATE would succeed
                    raise apsw.ReadOnlyError
                self._database.execute_sql("BEGIN IMMEDIATE")
            except (*ERRORS, Unavailable) as error:
                jobs = self._fail_expired(jobs, error)
            else:
                break
        return jobs

    def _fail_expired(self, jobs: list[Job], error: Exception) -> list[Job]:
        """Fail all jobs or, if the database is locked, the jobs past their deadline. Return the jobs to try again."""
        locked = isinstance(driver_error(error), (apsw.BusyError, apsw.LockedError))
        if not locked and not isinstance(error, Unavailable):
            self._disconnect()
        if isinstance(driver_error(error), apsw.ReadOnlyError):
            self._reopen()
        if self._release_space(jobs, self._translated(error)):
            return jobs
        now = time.monotonic()
        for job in jobs:
            if not locked or job.deadline <= now:
                job.error = self._translated(error)
                settle([job])
        return [job for job in jobs if not job.settled]

    @property
    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection = self._database.connection()
        return connection

    def _attempt(self, jobs: list[Job]) -> BaseException | None:
        """Run the jobs and commit the transaction. Return the error if the transaction was rolled back, else None."""
        changed: set[str] = set()
        # For a savepoint SQLite copies each page before its first change. A job that is alone needs none.
        savepoints = apsw.Cursor(self._connection) if len(jobs) > 1 else None
        for job in jobs:
            changed |= self._run_unit(job, savepoints)
            if not self._connection.in_transaction:
                # SQLITE_FULL, IOERR, NOMEM and INTERRUPT roll back the transaction; later savepoints would autocommit.
                return job.error if isinstance(job.error, Unavailable) else Unavailable()
        if savepoints is None and jobs[0].error is not None:
            self._rollback()
            return None
        began = time.monotonic()
        try:
            if changed and self._database.tables.versioned:
                self._connection.executemany(ADVANCE, [(name,) for name in changed])
            self._database.execute_sql("COMMIT")
        except ERRORS as error:
            self._rollback()
            return self._translated(error)
        self.workload.add(len(jobs), time.monotonic() - began)
        if self._database.erasing:
            self._database.erasing = False
            self._scrubbing.request()
        return None

    def _run_unit(self, job: Job, savepoints: apsw.Cursor | None) -> frozenset[str]:
        """Run the job, in a savepoint if there is a cursor for them. A failed job is undone only in a savepoint.

        Return the changed tables and, for changed counters, `counters(table)`.
        """
        job.result = job.error = None
        before = self._connection.total_changes()
        try:
            if savepoints is not None:
                savepoints.execute("SAVEPOINT unit")
            with noting() as statements, counting() if job.counters_only else nullcontext():
                job.result = perform(self._database, job.unit)
                index_changed_names(statements)
            if savepoints is not None:
                savepoints.execute("RELEASE unit")
        except BaseException as error:  # noqa: BLE001 - any exception belongs to the unit's caller
            job.error = self._translated(error)
            if savepoints is not None and self._connection.in_transaction:
                savepoints.execute("ROLLBACK TO unit")
                savepoints.execute("RELEASE unit")
            return frozenset()
        if self._connection.total_changes() == before:
            return frozenset()
        tables = self._database.tables
        return tables.all_changed(statements) or tables.names

    def _translated(self, error: BaseException) -> BaseException:
        return translate(error, self._database.database)

    def _rollback(self) -> None:
        try:
            self._database.rollback()
        except ERRORS:
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection, which rolls back its transaction. The next transaction opens a new connection."""
        with suppress(*ERRORS):
            self._database.close()

    def _abandon(self, jobs: list[Job], error: BaseException) -> None:
        self._disconnect()
        for job in jobs:
            job.error = self._translated(error)
        settle(jobs)
