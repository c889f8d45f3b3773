"""Count requests against rate limits in a SQLite file beside the database, shared by all processes of a machine.

The counts may be lost: the file is never synced, and a damaged file is replaced by an empty one.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from musicsvc.errors import Unavailable
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.sqlite.files import identity
from musicsvc.store.rate_limits.window import SECOND, UPSERT, Busy, Count, Hit, HitCounter, Status, advance

APPLICATION_ID = 0x4D535651  # "MSVQ"
VERSION = 1
TABLE = """
    CREATE TABLE IF NOT EXISTS quota (
        key TEXT PRIMARY KEY, began INTEGER NOT NULL, taken INTEGER NOT NULL, earlier INTEGER NOT NULL,
        ends INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
"""
COUNT = f"""
    INSERT INTO quota (key, began, taken, earlier, ends) VALUES (?1, ?2, 1, 0, ?2 + 2 * ?3)
    {UPSERT.format(window="?3", amount="?4", least="min", greatest="max")}
"""  # noqa: S608 - composed of constants
SELECT = "SELECT began, taken, earlier FROM quota WHERE key = ?"
UNCOUNT = "UPDATE quota SET taken = taken - 1 WHERE key = ? AND taken > 0"
ADD = "UPDATE quota SET taken = max(0, taken + ?2) WHERE key = ?1 AND began = ?3"
# Keys are read without a lock and deleted in small batches, so counting never waits long.
SELECT_OVER = "SELECT key FROM quota WHERE ends <= ?1 OR began > ?2"
SELECT_OLDEST = "SELECT key FROM quota ORDER BY ends LIMIT max(0, (SELECT count(*) FROM quota) - ?)"
DELETE = "DELETE FROM quota WHERE key = ?"
DELETE_BATCH = 100
MAX_ROWS = 300_000  # about 20 MB
PAGE_BYTES = 1024  # small, as every request writes a page
POLL_SECONDS = 0.00005
OPEN_TIMEOUT = 1
COUNT_NOW_TIMEOUT = 0.002
COUNT_TIMEOUT = 1.0
REASONS: dict[type[apsw.Error], str] = {
    apsw.FullError: "cannot be written: the disk is full",
    apsw.ReadOnlyError: "cannot be written",
    apsw.CantOpenError: "cannot be opened",
    apsw.CorruptError: "is damaged",
    apsw.NotADBError: "is damaged",
}


class SqliteHitCounter(HitCounter):
    """Counts requests in a SQLite file over one connection, which only one thread at a time may use."""

    def __init__(self, path: Path, clock: Callable[[], int], timeout: float) -> None:
        """Open or create the file. `timeout` limits each wait for locks of other processes, in seconds.

        This method and `count` raise Busy after the timeout, and Unavailable after any other error.
        """
        self._clock = clock
        self._path = path
        self._timeout = timeout
        self._deadline = 0.0
        try:
            with _opening_lock(path.parent):
                self._connection = _open(path)
        except (apsw.Error, OSError) as error:
            raise self._failure(error) from error
        self._identity = identity(path)
        self._connection.set_busy_handler(self._wait)

    def in_place(self) -> bool:
        return identity(self._path) == self._identity

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        try:
            if len(hits) == 1 and not hits[0].ahead:
                return super().count(hits)
            with self._transaction():
                return super().count(hits)
        except apsw.Error as error:
            raise self._failure(error) from error

    def count_several(self, requests: Sequence[Sequence[Hit]]) -> list[list[Status]]:
        """Count several requests in one transaction, because transactions take longer than counting."""
        if len(requests) == 1:
            return [self.count(requests[0])]
        try:
            with self._transaction():
                return [super(SqliteHitCounter, self).count(hits) for hits in requests]
        except apsw.Error as error:
            raise self._failure(error) from error

    def uncount(self, hits: Sequence[Hit]) -> None:
        try:
            super().uncount(hits)
        except apsw.Error as error:
            raise self._failure(error) from error

    def give_back(self, unused: Sequence[tuple[Hit, int, int]]) -> None:
        try:
            with self._transaction():
                super().give_back(unused)
        except apsw.Error as error:
            raise self._failure(error) from error

    def _count(self, hit: Hit) -> tuple[Count, int, bool]:
        now, limit, key = self._clock(), hit.limit, hit.key
        # SQLite commits the statement when its last row is fetched.
        counted: list[Any] = self._connection.execute(COUNT, (key, now, limit.window, limit.amount)).fetchall()
        if counted:
            return Count(*counted[0]), now, True
        stored: list[Any] = self._connection.execute(SELECT, (key,)).fetchall()
        return advance(limit, Count(*stored[0]), now) if stored else Count(now, 0, 0), now, False

    def _uncount(self, hit: Hit) -> None:
        self._connection.execute(UNCOUNT, (hit.key,))

    def _add(self, hit: Hit, number: int, began: int) -> None:
        self._connection.execute(ADD, (hit.key, number, began))

    def purge(self) -> None:
        now = self._clock()
        try:
            for query, bounds in ((SELECT_OVER, (now, now + 60 * SECOND)), (SELECT_OLDEST, (MAX_ROWS,))):
                keys = self._connection.execute(query, bounds).fetchall()
                for start in range(0, len(keys), DELETE_BATCH):
                    with self._transaction():
                        self._connection.executemany(DELETE, keys[start : start + DELETE_BATCH])
        except apsw.Error as error:
            raise self._failure(error) from error

    def close(self) -> None:
        with suppress(apsw.Error):
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _wait(self, tried: int) -> bool:
        """Busy handler: pause and return True to make SQLite retry, else False (timeout). `tried`: earlier retries."""
        now = time.monotonic()
        if tried == 0:
            self._deadline = now + self._timeout
        if now >= self._deadline:
            return False
        time.sleep(POLL_SECONDS)
        return True

    def _failure(self, error: Exception) -> Unavailable:
        if isinstance(error, apsw.BusyError):
            return Busy(f"{self._path} is locked by another program")
        reason = next((words for kind, words in REASONS.items() if isinstance(error, kind)), "cannot be used")
        return Unavailable(f"{self._path} {reason}")


class MachineHitCounter:
    """Counts the requests to all processes of a machine, over a connection for the event loop and one for a thread."""

    threads = 1
    is_local = True

    def __init__(self, path: Path, clock: Callable[[], int]) -> None:
        self._path = path
        self._clock = clock
        self._connections: list[SqliteHitCounter] = []

    def open(self) -> None:
        self.close()
        for timeout in (COUNT_NOW_TIMEOUT, COUNT_TIMEOUT):
            self._connections.append(SqliteHitCounter(self._path, self._clock, timeout))

    def count_now(self, requests: Sequence[Sequence[Hit]]) -> list[list[Status]]:
        """Count requests on the event loop. Raises Busy if another process holds the lock for too long."""
        return self._connections[0].count_several(requests)

    def count(self, hits: Sequence[Hit]) -> list[Status]:
        return self._connections[1].count(hits)

    def uncount(self, hits: Sequence[Hit]) -> None:
        self._connections[1].uncount(hits)

    def give_back(self, unused: Sequence[tuple[Hit, int, int]]) -> None:
        """Subtract requests counted in advance. Call this on the event loop. Raises Busy instead of waiting long."""
        self._connections[0].give_back(unused)

    def purge(self) -> None:
        self._connections[1].purge()

    def in_place(self) -> bool:
        return all(connection.in_place() for connection in self._connections)

    def close(self) -> None:
        while self._connections:
            self._connections.pop().close()


def file_of(database: Path) -> Path:
    """Return the counter's file: `limits.db` beside `musicsvc.db`, `NAME-limits.db` beside any other `NAME.db`."""
    return database.with_name("limits.db" if database.name == "musicsvc.db" else f"{database.stem}-limits.db")


@contextmanager
def _opening_lock(folder: Path) -> Iterator[None]:
    """Prevent other processes from opening a counter in the folder during the `with` block."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if not file_locks.acquire(descriptor, timeout=OPEN_TIMEOUT, poll=POLL_SECONDS):
            raise Busy(f"{folder} is locked by another program")
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> apsw.Connection:
    """Open the file. If the file is damaged or of another version, rename it and create an empty file."""
    try:
        return _connection(path)
    except (apsw.CorruptError, apsw.NotADBError):
        for suffix in ("-wal", "-shm"):  # first, else SQLite would apply them to the new file
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.replace(path.with_name(f"{path.name}.damaged"))
        return _connection(path)


def _connection(path: Path) -> apsw.Connection:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: apsw.Connection, path: Path) -> None:
    connection.set_busy_timeout(1000 * OPEN_TIMEOUT)
    if connection.pragma("application_id") not in {0, APPLICATION_ID}:
        raise Unavailable(f"{path} belongs to another program")
    connection.pragma("page_size", PAGE_BYTES)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "OFF")
    if connection.execute("PRAGMA quick_check(1)").get != "ok":
        raise apsw.CorruptError
    if connection.pragma("user_version") not in {0, VERSION}:
        raise apsw.NotADBError
    connection.execute(TABLE)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", VERSION)
