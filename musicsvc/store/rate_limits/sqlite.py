"""Counting for all processes of a machine: a small SQLite file beside the database.

Nothing in it is worth a disk's time: it is never synced, and where it is damaged another one takes its place.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import apsw

from musicsvc.errors import Unavailable
from musicsvc.store.engine.sqlite.files import identity
from musicsvc.store.rate_limits.window import SECOND, TAKE, Busy, Demand, Quotas, Row, Standing, at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

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
    {TAKE.format(window="?3", amount="?4", least="min", greatest="max")}
"""  # noqa: S608 - put together from constants
LOOK = "SELECT began, taken, earlier FROM quota WHERE key = ?"
GIVE_BACK = "UPDATE quota SET taken = taken - 1 WHERE key = ? AND taken > 0"
# Keys are read without a lock and deleted a few at a time: whoever counts meanwhile waits for a few only.
OVER = "SELECT key FROM quota WHERE ends <= ?1 OR began > ?2"
OLDEST = "SELECT key FROM quota ORDER BY ends LIMIT max(0, (SELECT count(*) FROM quota) - ?)"
DROP = "DELETE FROM quota WHERE key = ?"
AT_ONCE = 100
MOST_ROWS = 300_000  # some 20 MB
PAGE_BYTES = 1024  # a page is written for each request
NAP_SECONDS = 0.00005
OPENING_SECONDS = 1
AT_ONCE_SECONDS = 0.002
PATIENT_SECONDS = 1.0
REASONS: dict[type[apsw.Error], str] = {
    apsw.FullError: "cannot be written: the disk is full",
    apsw.ReadOnlyError: "cannot be written",
    apsw.CantOpenError: "cannot be opened",
    apsw.CorruptError: "is damaged",
    apsw.NotADBError: "is damaged",
}


class FileQuotas(Quotas):
    """One connection to the file, for one thread at a time."""

    def __init__(self, path: Path, clock: Callable[[], int], patience: float) -> None:
        """Open the file, and make it where there is none; `patience`: seconds to wait for other processes.

        Raises Unavailable with the reason, also from `take`; Busy where others kept it for too long.
        """
        self._clock = clock
        self._path = path
        self._patience = patience
        self._deadline = 0.0
        try:
            with _alone_in(path.parent):
                self._connection = _opened(path)
        except (apsw.Error, OSError) as error:
            raise self._failure(error) from error
        self._identity = identity(path)
        self._connection.set_busy_handler(self._wait)

    def in_place(self) -> bool:
        """Whether other processes that look for the file find this one."""
        return identity(self._path) == self._identity

    def take(self, demands: Sequence[Demand]) -> list[Standing]:
        """Count in one transaction."""
        try:
            if len(demands) == 1:
                return super().take(demands)
            with self._transaction():
                return super().take(demands)
        except apsw.Error as error:
            raise self._failure(error) from error

    def give_back(self, demands: Sequence[Demand]) -> None:
        """Uncount a request that was allowed but could not be served."""
        try:
            super().give_back(demands)
        except apsw.Error as error:
            raise self._failure(error) from error

    def _count(self, demand: Demand) -> tuple[Row, int, bool]:
        now, limit, key = self._clock(), demand.limit, demand.key
        # Fetched to the end, where it is committed.
        counted: list[Any] = self._connection.execute(COUNT, (key, now, limit.window, limit.amount)).fetchall()
        if counted:
            return Row(*counted[0]), now, True
        kept: list[Any] = self._connection.execute(LOOK, (key,)).fetchall()
        return at(limit, Row(*kept[0]), now) if kept else Row(now, 0, 0), now, False

    def _give_back(self, demand: Demand) -> None:
        self._connection.execute(GIVE_BACK, (demand.key,))

    def purge(self) -> None:
        """Drop rows that no longer tell anything, and the oldest where there are far too many."""
        now = self._clock()
        try:
            for query, bounds in ((OVER, (now, now + 60 * SECOND)), (OLDEST, (MOST_ROWS,))):
                keys = self._connection.execute(query, bounds).fetchall()
                for start in range(0, len(keys), AT_ONCE):
                    with self._transaction():
                        self._connection.executemany(DROP, keys[start : start + AT_ONCE])
        except apsw.Error as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Close the connection."""
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
        """Whether to try once more, after a nap much shorter than SQLite's own."""
        now = time.monotonic()
        if tried == 0:
            self._deadline = now + self._patience
        if now >= self._deadline:
            return False
        time.sleep(NAP_SECONDS)
        return True

    def _failure(self, error: Exception) -> Unavailable:
        if isinstance(error, apsw.BusyError):
            return Busy(f"{self._path} is locked by another program")
        reason = next((words for kind, words in REASONS.items() if isinstance(error, kind)), "cannot be used")
        return Unavailable(f"{self._path} {reason}")


class MachineQuotas:
    """Two connections to the file: one for the event loop, which waits for nobody, and one that does, for a thread."""

    threads = 1

    def __init__(self, path: Path, clock: Callable[[], int]) -> None:
        self._path = path
        self._clock = clock
        self._connections: list[FileQuotas] = []

    def open(self) -> None:
        """Open the file, and make it where there is none."""
        self.close()
        for patience in (AT_ONCE_SECONDS, PATIENT_SECONDS):
            self._connections.append(FileQuotas(self._path, self._clock, patience))

    def take_at_once(self, demands: Sequence[Demand]) -> list[Standing]:
        """Count; raises Busy where others keep the file for longer than they do to count."""
        return self._connections[0].take(demands)

    def take(self, demands: Sequence[Demand]) -> list[Standing]:
        """Count once it is our turn."""
        return self._connections[1].take(demands)

    def give_back(self, demands: Sequence[Demand]) -> None:
        """Uncount a request that was allowed but could not be served."""
        self._connections[1].give_back(demands)

    def purge(self) -> None:
        """Drop rows that no longer tell anything, and the oldest where there are far too many."""
        self._connections[1].purge()

    def in_place(self) -> bool:
        """Whether other processes that look for the file find ours."""
        return all(connection.in_place() for connection in self._connections)

    def close(self) -> None:
        """Close both connections."""
        while self._connections:
            self._connections.pop().close()


def place(data: Path) -> Path:
    """The file of this database: `limits.db` for `musicsvc.db`, a name of its own for every other."""
    return data.with_name("limits.db" if data.name == "musicsvc.db" else f"{data.stem}-limits.db")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """While no other process opens its file in this folder."""
    lock = os.open(folder, os.O_RDONLY)
    deadline = time.monotonic() + OPENING_SECONDS
    try:
        while not _locked(lock):
            if time.monotonic() >= deadline:
                raise Busy(f"{folder} is locked by another program")
            time.sleep(NAP_SECONDS)
        yield
    finally:
        os.close(lock)


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _opened(path: Path) -> apsw.Connection:
    """A connection to a sound file; one that is damaged, or of another version, is put aside."""
    try:
        return _connection(path)
    except (apsw.CorruptError, apsw.NotADBError):
        for suffix in ("-wal", "-shm"):  # before the file: a new one would take them for its own
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
    connection.set_busy_timeout(1000 * OPENING_SECONDS)
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
