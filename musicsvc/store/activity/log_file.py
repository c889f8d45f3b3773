"""The activity log as a SQLite file. It is created if missing, and replaced if damaged."""

import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from musicsvc.errors import Damaged, Failure, Unavailable
from musicsvc.store.activity.log_store import Log, Outdated, exists, migrate
from musicsvc.store.engine.sqlite import file_locks, files
from musicsvc.store.engine.sqlite.files import SqliteDatabase
from musicsvc.store.engine.sqlite.store import SqliteStore

T = TypeVar("T")
SIDES = ("-wal", "-shm", "")  # the database file last, because a new one would use an old WAL beside it
log = logging.getLogger("musicsvc")


class LogFile(Log):
    """The activity log in a separate file, so that neither its size nor damage to it affects the database."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self.path = path
        self._changing = threading.Lock()
        self._store: SqliteStore | None = None

    def prepare(self) -> None:
        """Open the file. Create it if it is missing; replace it if it is unusable."""
        with self._changing:
            if self._store is not None and not self._store.in_place():
                self._close()
            if self._store is None:
                self._store = _open_or_create(self.path)

    def open_existing(self) -> bool:
        with self._changing:
            if self._store is None and self.path.exists():
                try:
                    self._store = SqliteStore(self.url, log=True)
                except Damaged:
                    hint = "The server renames it at its next start and creates a new one."
                    raise Damaged(f"The activity log {self.path} is damaged. {hint}") from None
                except files.Foreign:
                    raise Failure(_foreign(self.path)) from None
        return self._store is not None and self._store.read(exists).result()

    def replace(self) -> None:
        """Rename the damaged file and create a new log, unless another process has already replaced the file."""
        with self._changing:
            if self._store is not None:
                with _exclusive(self.path):
                    if self._store.in_place():
                        _rename(self.path, "is damaged")
                self._close()
        self.prepare()

    def read(self, unit: Callable[[], T]) -> Future[T]:
        return self._open().read(unit)

    def write(self, unit: Callable[[], T]) -> Future[T]:
        return self._open().write(unit)

    def _open(self) -> SqliteStore:
        if self._store is None:
            raise Unavailable("The activity log is not open.")
        return self._store

    def close(self) -> None:
        with self._changing:
            self._close()

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


def default_file(data: Path) -> Path:
    """Return the path of a database's activity log: `activity.db` for `musicsvc.db`, else `NAME-activity.db`."""
    return data.with_name("activity.db" if data.name == "musicsvc.db" else f"{data.stem}-activity.db")


def _open_or_create(path: Path) -> SqliteStore:
    """Open the file. Create, migrate or replace it if necessary. Raises Failure for a disk error or a foreign file."""
    try:
        files.create(path, files.LOG_ID)
        with _exclusive(path):
            try:
                return _open_migrated(path)
            except Outdated:
                _rename(path, "was created by another version of musicsvc")
            except Damaged:
                _rename(path, "is damaged")
            files.create(path, files.LOG_ID)
            return _open_migrated(path)
    except files.Foreign:
        raise Failure(_foreign(path)) from None
    except OSError as error:
        raise Failure(f"The activity log {path} cannot be created: {error.strerror}.") from None
    except files.ERRORS as error:
        raise Failure(f"The activity log {path} cannot be created: {error}.") from None


def _foreign(path: Path) -> str:
    return f"{path} is not an activity log and was left unchanged. Set activity.file to another path."


def _open_migrated(path: Path) -> SqliteStore:
    store = SqliteStore(f"sqlite:///{path}", log=True)
    try:
        database = SqliteDatabase(path, {"journal_mode": "WAL", "synchronous": "NORMAL"})
        try:
            migrate(database)
        except files.ERRORS as error:
            raise files.translate(error, path) from error
        finally:
            database.close_all()
    except BaseException:
        store.close()
        raise
    return store


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Lock the file against creation, migration and replacement by other processes."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        file_locks.acquire(lock)
        yield
    finally:
        os.close(lock)


def _rename(path: Path, reason: str) -> None:
    """Rename the log file and its WAL, so that a new log can be created."""
    names = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    for side in SIDES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + side).rename(aside.with_name(aside.name + side))
    log.warning("the activity log %s %s; renamed it to %s and created a new one", path, reason, aside)
