"""The writer thread: several waiting units in one durable commit, each in a savepoint of its own."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from musicsvc.errors import Unavailable
from musicsvc.store.engine.binding import bind, perform
from musicsvc.store.engine.sqlite.files import ERRORS, Roomless, driver_error, translate
from musicsvc.store.engine.store import Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.engine.sqlite.database import SqliteDatabase
    from musicsvc.store.engine.sqlite.reserved_space import Ballast

T = TypeVar("T")
GROUP = 128
POLL_MILLISECONDS = 50


@dataclass(slots=True)
class Job:
    """A unit that waits, with the moment (monotonic seconds) until which it may; `urgent`: also on a full disk."""

    unit: Callable[[], Any]
    deadline: float
    urgent: bool = False
    future: Future[Any] = field(default_factory=Future)
    result: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        """Tell the waiting side how the unit ended, once."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class GroupWriter:
    """Runs units on one thread; a unit is acknowledged after the commit that holds it."""

    def __init__(self, database: SqliteDatabase, patience: float, ballast: Ballast) -> None:
        """`patience`: seconds that a unit waits for a lock of another process before it is Unavailable."""
        self.workload = Workload()
        self._ballast = ballast
        self._database = database
        self._patience = patience
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="store-write", daemon=True)
        self._thread.start()

    def submit(self, unit: Callable[[], T], *, urgent: bool = False) -> Future[T]:
        """Put the unit into the queue; raises Unavailable once the writer is closing."""
        job = Job(unit, time.monotonic() + self._patience, urgent)
        with self._gate:
            if self._closing:
                raise Unavailable("The service is shutting down.")
            self._queue.put(job)
        return job.future

    def waiting(self) -> int:
        """How many units wait for their group."""
        return self._queue.qsize()

    def close(self) -> None:
        """Run what waits, then close the connection."""
        with self._gate:
            if not self._closing:
                self._closing = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        bind(self._database)
        while (first := self._queue.get()) is not None:
            jobs = [job for job in self._drain(first) if job.future.set_running_or_notify_cancel()]
            try:
                self._commit(jobs)
            except BaseException as error:  # noqa: BLE001 - without this thread nothing would be written again
                self._abandon(jobs, error)
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
            # Nothing of the group was kept, so nobody pays for another's fault: each once more, by itself.
            for job in begun:
                self._alone(job)
        for job in begun:
            job.settle()

    def _alone(self, job: Job) -> None:
        for begun in self._begin([job]):
            begun.error = self._attempt([begun]) or begun.error
            if self._make_room([begun], begun.error):
                self._alone(begun)
                self._ballast.refill()
            begun.settle()

    def _make_room(self, jobs: list[Job], error: BaseException | None) -> bool:
        """Give up some of the ballast where an urgent unit met a full disk; whether it is worth another try."""
        return isinstance(error, Roomless) and any(job.urgent for job in jobs) and self._ballast.release()

    def _begin(self, jobs: list[Job]) -> list[Job]:
        """Begin a transaction; those of the jobs that had the patience to see it begin."""
        while jobs:
            try:
                self._database.require_in_place()
                if self._database.connect(reuse_if_open=True):
                    self._connection.set_busy_timeout(POLL_MILLISECONDS)
                self._database.execute_sql("BEGIN IMMEDIATE")
            except (*ERRORS, Unavailable) as error:
                jobs = self._refuse(jobs, error)
            else:
                break
        return jobs

    def _refuse(self, jobs: list[Job], error: Exception) -> list[Job]:
        """Settle the jobs that wait no longer, all where the fault is not a lock; those that are left."""
        locked = isinstance(driver_error(error), (apsw.BusyError, apsw.LockedError))
        if not locked and not isinstance(error, Unavailable):
            self._disconnect()
        if self._make_room(jobs, self._translated(error)):
            return jobs
        now = time.monotonic()
        for job in jobs:
            if not locked or job.deadline <= now:
                job.error = self._translated(error)
                job.settle()
        return [job for job in jobs if not job.future.done()]

    @property
    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection = self._database.connection()
        return connection

    def _attempt(self, jobs: list[Job]) -> BaseException | None:
        """Run the units in the open transaction and commit; what undid the transaction, None where it was kept."""
        for job in jobs:
            self._run_unit(job)
            if not self._connection.in_transaction:
                # SQLITE_FULL, IOERR, NOMEM and INTERRUPT undo everything; later savepoints would commit by themselves.
                return job.error if isinstance(job.error, Unavailable) else Unavailable()
        began = time.monotonic()
        try:
            self._database.execute_sql("COMMIT")
        except ERRORS as error:
            self._rollback()
            return self._translated(error)
        self.workload.add(len(jobs), time.monotonic() - began)
        return None

    def _run_unit(self, job: Job) -> None:
        job.result = job.error = None
        try:
            self._database.execute_sql("SAVEPOINT unit")
            job.result = perform(self._database, job.unit)
            self._database.execute_sql("RELEASE unit")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the unit's caller
            job.error = self._translated(error)
            if self._connection.in_transaction:
                self._database.execute_sql("ROLLBACK TO unit")
                self._database.execute_sql("RELEASE unit")

    def _translated(self, error: BaseException) -> BaseException:
        return translate(error, self._database.database)

    def _rollback(self) -> None:
        try:
            self._database.rollback()
        except ERRORS:
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection, which undoes what is open on it; the next group opens another."""
        with suppress(*ERRORS):
            self._database.close()

    def _abandon(self, jobs: list[Job], error: BaseException) -> None:
        self._disconnect()
        for job in jobs:
            job.error = self._translated(error)
            job.settle()
