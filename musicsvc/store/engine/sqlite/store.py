"""Run transactions in a SQLite file through apsw: reads on a pool of threads, writes in groups on one thread."""

import asyncio
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import apsw

from musicsvc.errors import Failure, ReadOnly, Unavailable
from musicsvc.store.engine.sql import T, bind, current, perform
from musicsvc.store.engine.sqlite import file_locks, files
from musicsvc.store.engine.sqlite.files import SqliteDatabase, close
from musicsvc.store.engine.sqlite.group_commit import GroupWriter
from musicsvc.store.engine.sqlite.reserved_space import ReservedSpace
from musicsvc.store.engine.sqlite.scrubbing import Scrubbing
from musicsvc.store.engine.store import CLOSING, Store, enqueue, queued
from musicsvc.store.engine.url import SQLITE

READERS = 6
REOPEN_SECONDS = 0.2  # for the running reads to end
LOOK_SECONDS = 1.0  # between two looks of health checks whether the database can be written
# Savepoint journals in memory and a checkpoint only every 16 MB save a quarter of the CPU time of writing plays.
WRITER_PRAGMAS: dict[str, object] = {
    "journal_mode": "WAL",
    "cache_size": -16000,
    "temp_store": "MEMORY",
    "wal_autocheckpoint": 4000,
}
# A prepared statement is forgotten after this number of executions of others. A batch of plays runs about 100, among
# them INSERTs of 15 kB, which take long to prepare.
WRITER_STATEMENTS = 512
CHANGES = "PRAGMA data_version"  # runs in half the time of the driver's method `pragma`


class SqliteStore(Store):
    """An open database in one SQLite file, in WAL mode."""

    def __init__(self, url: str, *, log: bool = False) -> None:
        """Open the SQLite file of a `sqlite:///` URL. Raises Failure if it is unusable.

        `log`: the file is a log of API calls, synced less often, so that a power failure may lose the newest calls.
        """
        self.url = url
        self.path = Path(url.removeprefix(SQLITE))
        self._reserved = ReservedSpace(self.path)
        self._examine(log=log)
        # An activity log is never restored, and is replaced while it is open.
        self._use_lock = file_locks.UseLock(None) if log else file_locks.use(self.path)
        # Opened here because `changes` is called on the event loop.
        self._watch: apsw.Connection | None = self._open_watch()
        self._watch_lock = threading.Lock()
        self._identity = files.identity(self.path)
        self._readers = SqliteDatabase(self.path, {"query_only": "ON", "cache_size": -8000})
        self._pool = ThreadPoolExecutor(READERS, "store-read", initializer=bind, initargs=(self._readers,))
        pragmas = WRITER_PRAGMAS | ({"synchronous": "NORMAL"} if log else {})
        database = SqliteDatabase(self.path, pragmas, statements=WRITER_STATEMENTS, log=log)
        self._scrubbing = Scrubbing(self.path)
        self._writer = GroupWriter(database, self._reserved, self._scrubbing, self._reopen)
        self.workload = self._writer.workload
        self._next_look, self._fault = 0.0, ""  # of health checks

    def _examine(self, *, log: bool) -> None:
        """Raise Failure if the file is unusable. On a full disk, first free reserved space that SQLite needs."""
        while True:
            try:
                return files.examine(self.path, files.LOG_ID if log else files.APPLICATION_ID)
            except files.CannotOpen:
                if log or not self._reserved.release():
                    raise

    def _open_watch(self) -> apsw.Connection:
        try:
            with files.translated_open_errors(self.path):
                watch = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        except Failure:
            self._use_lock.release()
            raise
        watch.set_busy_timeout(1000)
        return watch

    def in_place(self) -> bool:
        """Return True if the database file was not moved or replaced since it was opened."""
        return files.identity(self.path) == self._identity

    def read(self, unit: Callable[[], T], *, within: float | None = None, patient: bool = True) -> Future[T]:  # noqa: ARG002 - waits are short
        return enqueue(self._pool, self._read, unit)

    def probe(self, unit: Callable[[], T], *, within: float) -> Future[T]:  # noqa: ARG002 - waits are short
        return enqueue(self._pool, self._probe, unit)

    def _probe(self, unit: Callable[[], T]) -> T:
        """Call `unit`. Raises ReadOnly if the database cannot be written, which is looked at once a second."""
        result = self._read(unit)
        if time.monotonic() >= self._next_look:
            self._next_look, fault = time.monotonic() + LOOK_SECONDS, files.write_fault(self.path)
            if self._fault and not fault:
                self._writer.submit(self._note_recovery, counters_only=True)  # SQLite decides
            else:
                self._fault = fault
        if self._fault:
            raise ReadOnly(self._fault)
        return result

    def _note_recovery(self) -> None:
        self._fault = ""

    def _reopen(self) -> None:
        """Close all connections for a moment if the disk can be written: those opened before are read-only together."""
        everybody = threading.Barrier(READERS + 1, self._reopen_watch, REOPEN_SECONDS)

        def leave() -> None:
            self._readers.close()
            everybody.wait()

        with suppress(RuntimeError, Failure):  # a long read goes on, or the store is closing
            if not files.write_fault(self.path):
                for _ in range(READERS):
                    self._pool.submit(leave)
                everybody.wait()

    def _reopen_watch(self) -> None:
        with self._watch_lock:
            if self._watch is not None:
                close(self._watch)
                self._watch = self._open_watch()

    def _read(self, unit: Callable[[], T]) -> T:
        self._readers.require_in_place()
        try:
            self._readers.connect(reuse_if_open=True)
            self._readers.execute_sql("BEGIN")
            return perform(self._readers, unit)
        except files.ERRORS as error:
            failure = files.translate(error, self.path)
            if failure is error or files.refused_by_query_only(error):
                raise
            raise failure from error
        finally:
            self._end_read()

    def _end_read(self) -> None:
        """Roll back. If that fails, close the connection, so that the next read opens a new one."""
        try:
            self._readers.rollback()
        except files.ERRORS:
            self._readers.close()

    def write(
        self,
        unit: Callable[[], T],
        *,
        urgent: bool = False,
        counters_only: bool = False,
        within: float | None = None,  # noqa: ARG002 - the writer has its own limit
    ) -> Future[T]:
        return self._writer.submit(unit, urgent=urgent, counters_only=counters_only)

    def write_on_loop(
        self,
        unit: Callable[[], T],
        *,
        counters_only: bool = False,
        within: float | None = None,  # noqa: ARG002 - the same
    ) -> asyncio.Future[T]:
        return self._writer.submit_on_loop(unit, counters_only=counters_only)

    def reserve_space(self) -> str:
        return self._reserved.fill()

    def changes(self) -> int:
        """Return SQLite's `data_version`, read on a connection that never writes, so that every commit changes it."""
        return self._watched(lambda watch: int(watch.execute(CHANGES).get))

    def table_versions(self) -> dict[str, int]:
        return self._watched(lambda watch: dict(watch.execute("SELECT name, number FROM table_version")))

    def others(self) -> Hashable:
        """Return the `data_version` of the writer's connection, which only commits of other connections change."""

        def version() -> Hashable:
            connection = current().connection()
            return connection, connection.pragma("data_version")  # comparable only with one of the same connection

        return self.write(version, counters_only=True).result()

    def _watched(self, read: Callable[[apsw.Connection], T]) -> T:
        with self._watch_lock:
            if self._watch is None:
                raise Unavailable(CLOSING)
            try:
                return read(self._watch)
            except apsw.Error as error:
                raise files.translate(error, self.path) from error

    def overwritten(self, within: float) -> bool:
        return self._scrubbing.wait(within)

    def waiting(self) -> tuple[int, int]:
        return queued(self._pool), self._writer.waiting()

    def close(self) -> None:
        """Wait for the running transactions, then close all connections. Closing the last one checkpoints the WAL."""
        self._pool.shutdown(wait=True)
        self._readers.close_all()
        with self._watch_lock:
            if self._watch is not None:
                close(self._watch)
                self._watch = None
        self._writer.close()
        self._scrubbing.close()
        self._use_lock.release()
