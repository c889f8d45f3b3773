"""Count requests against rate limits in a SQLite file beside the database, shared by all processes of a machine.

The counts may be lost: the file is never synced, and a damaged file is replaced by an empty one.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from musicsvc import descriptors
from musicsvc.errors import Unavailable
from musicsvc.store.engine.sql import batches
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.sqlite.files import identity
from musicsvc.store.rate_limits.shared import COLUMNS, SAVE, SharedHitCounter, counts_of
from musicsvc.store.rate_limits.window import Count

T = TypeVar("T")
APPLICATION_ID = 0x4D535651  # "MSVQ"
VERSION = 2
TABLE = """
    CREATE TABLE IF NOT EXISTS quota (
        key TEXT PRIMARY KEY, began INTEGER NOT NULL, requests INTEGER NOT NULL, previous INTEGER NOT NULL,
        ends INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
"""
SELECT = f"SELECT {COLUMNS} FROM quota WHERE key = ?"  # noqa: S608 - a constant
DELETE = "DELETE FROM quota WHERE key = ? AND ends = ?"
DELETE_BATCH = 100  # so that counting never waits long
MAX_ROWS = 300_000  # about 20 MB
PAGE_BYTES = 1024  # small, as every request writes a page
LOCK_SECONDS = 1  # the longest wait for a lock of another process
REASONS: dict[type[apsw.Error], str] = {
    apsw.BusyError: "is locked by another program",
    apsw.FullError: "cannot be written: the disk is full",
    apsw.ReadOnlyError: "cannot be written",
    apsw.CantOpenError: "cannot be opened",
    apsw.CorruptError: "is damaged",
    apsw.NotADBError: "is damaged",
}


class SqliteHitCounter(SharedHitCounter):
    """Counts the requests to all processes of a machine in a SQLite file."""

    spans_machines = False

    def __init__(self, path: Path, clock: Callable[[], int]) -> None:
        """`clock` returns the time in milliseconds."""
        self._clock = clock
        self._path = path
        self._opened: apsw.Connection | None = None
        self._identity: object = None

    @property
    def _connection(self) -> apsw.Connection:
        if self._opened is None:
            with _opening_lock(self._path.parent):
                self._opened = _open(self._path)
            self._identity = identity(self._path)
        return self._opened

    def check(self) -> None:
        if identity(self._path) != self._identity:
            self.close()
        self._attempt(lambda: self._connection)

    def purge(self) -> None:
        self._purge(self._clock(), MAX_ROWS)

    def _locked(self, keys: Sequence[str]) -> tuple[int, Mapping[str, tuple[Count, int]]]:
        found = [row for key in keys for row in self._connection.execute(SELECT, (key,))]
        return self._clock(), counts_of(found)

    def _save(self, *row: int | str) -> None:
        self._connection.execute(SAVE, row).fetchall()

    def _read(self, query: str, *values: int) -> list[Any]:
        return self._attempt(lambda: self._connection.execute(query, values).fetchall())

    def _delete(self, rows: Sequence[tuple[str, int]]) -> None:
        for some in batches(rows, DELETE_BATCH):
            self._transact(partial(self._connection.executemany, DELETE, some))

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with suppress(apsw.Error):
                opened.close()

    def _transact(self, unit: Callable[[], T]) -> T:
        return self._attempt(lambda: self._run(unit))

    def _run(self, unit: Callable[[], T]) -> T:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            done = unit()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return done

    def _attempt(self, work: Callable[[], T]) -> T:
        """Return the result of `work`. After a fault, close the file, so that the next use opens or replaces it."""
        try:
            return work()
        except (apsw.Error, OSError) as error:
            self.close()
            reason = next((words for kind, words in REASONS.items() if isinstance(error, kind)), "cannot be used")
            raise Unavailable(f"{self._path} {reason}") from error


def file_of(database: Path) -> Path:
    """Return the counter's file: `limits.db` beside `musicsvc.db`, `NAME-limits.db` beside any other `NAME.db`."""
    return database.with_name("limits.db" if database.name == "musicsvc.db" else f"{database.stem}-limits.db")


@contextmanager
def _opening_lock(folder: Path) -> Iterator[None]:
    """Prevent other processes from opening a counter in the folder during the `with` block."""
    with descriptors.opened(folder) as descriptor:
        if not file_locks.acquire(descriptor, timeout=LOCK_SECONDS):
            raise Unavailable(f"{folder} is locked by another program")
        yield


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
    os.close(descriptors.open_or_create(path))
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: apsw.Connection, path: Path) -> None:
    connection.set_busy_timeout(1000 * LOCK_SECONDS)
    if connection.pragma("application_id") not in {0, APPLICATION_ID}:
        raise Unavailable(f"{path} belongs to another program")
    connection.pragma("page_size", PAGE_BYTES)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "OFF")
    if connection.pragma("quick_check", 1) != "ok":
        raise apsw.CorruptError
    if connection.pragma("user_version") not in {0, VERSION}:
        raise apsw.NotADBError
    connection.execute(TABLE)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", VERSION)
