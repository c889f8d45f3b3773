"""The writer thread: several waiting units in one durable commit, each in a savepoint of its own."""

from __future__ import annotations

import math
import queue
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
import peewee

from musicsvc.errors import Unavailable
from musicsvc.store.database import bind
from musicsvc.store.sqlite_files import driver_error, translate

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.sqlite import SqliteDatabase

T = TypeVar("T")
GROUP = 128
POLL_SECONDS = 0.05


@dataclass(slots=True)
class Job:
    """A unit that waits, with the moment (monotonic seconds) until which it may."""

    unit: Callable[[], Any]
    deadline: float
    future: Future[Any] = field(default_factory=Future)
    result: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        """Tell the waiting side how the unit ended."""
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class TransactionLostError(Exception):
    """SQLite undid the whole transaction (SQLITE_FULL, IOERR, NOMEM, INTERRUPT do)."""


class GroupWriter:
    """Runs units on one thread; a unit is acknowledged after the commit that holds it."""

    def __init__(self, database: SqliteDatabase, patience: float) -> None:
        """`patience`: seconds that a unit waits for a lock of another process before it is Unavailable."""
        self._database = database
        self._patience = patience
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-write", daemon=True)
        self._closing = False
        self._thread.start()

    def submit(self, unit: Callable[[], T]) -> Future[T]:
        """Put the unit into the queue."""
        job = Job(unit, time.monotonic() + self._patience)
        if self._closing:
            raise Unavailable("The service is shutting down.")
        self._queue.put(job)
        return job.future

    def close(self) -> None:
        """Run what waits, then close the connection."""
        self._closing = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        bind(self._database)
        while (job := self._queue.get()) is not None:
            self._commit(self._drain([job]))
        self._database.close_all()

    def _drain(self, jobs: list[Job]) -> list[Job]:
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
        jobs = self._begin([job for job in jobs if job.future.set_running_or_notify_cancel()])
        if not jobs:
            return
        try:
            self._attempt(jobs)
        except TransactionLostError:
            for job in jobs:
                self._alone(job)
        for job in jobs:
            job.settle()

    def _begin(self, jobs: list[Job]) -> list[Job]:
        """Begin a transaction; units whose patience ends while another process holds the lock are refused."""
        while jobs:
            try:
                self._database.connect(reuse_if_open=True)
                self._connection.set_busy_timeout(int(POLL_SECONDS * 1000))
                self._database.execute_sql("BEGIN IMMEDIATE")
            except (peewee.PeeweeException, apsw.Error) as error:
                locked = isinstance(driver_error(error), (apsw.BusyError, apsw.LockedError))
                jobs = self._refuse(jobs, time.monotonic() if locked else math.inf)
            else:
                break
        return jobs

    @staticmethod
    def _refuse(jobs: list[Job], moment: float) -> list[Job]:
        for job in jobs:
            if job.deadline <= moment:
                job.future.set_exception(Unavailable())
        return [job for job in jobs if job.deadline > moment]

    @property
    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection = self._database.connection()
        return connection

    def _attempt(self, jobs: list[Job]) -> None:
        """Run the units in the open transaction and commit; raises TransactionLostError where nothing was kept."""
        for job in jobs:
            self._run_unit(job)
            if not self._connection.in_transaction:
                raise TransactionLostError
        try:
            self._database.execute_sql("COMMIT")
        except peewee.PeeweeException as error:
            self._rollback()
            raise TransactionLostError from error

    def _run_unit(self, job: Job) -> None:
        job.result = job.error = None
        try:
            self._database.execute_sql("SAVEPOINT unit")
            job.result = job.unit()
            self._database.execute_sql("RELEASE unit")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the unit's caller
            job.error = translate(error)
            if self._connection.in_transaction:
                self._database.execute_sql("ROLLBACK TO unit")
                self._database.execute_sql("RELEASE unit")

    def _alone(self, job: Job) -> None:
        """Run one unit in a transaction of its own, after the group's was lost."""
        try:
            self._database.execute_sql("BEGIN IMMEDIATE")
            self._attempt([job])
        except (peewee.PeeweeException, TransactionLostError):
            self._rollback()
            job.error = job.error or Unavailable()

    def _rollback(self) -> None:
        with suppress(peewee.PeeweeException):
            self._database.rollback()
