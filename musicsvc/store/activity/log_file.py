"""The log of calls as a SQLite file: made where it is missing, kept aside and begun anew where it is damaged."""

from __future__ import annotations

import itertools
import logging
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from musicsvc.errors import Damaged, Failure, Unavailable
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.log import Log
from musicsvc.store.engine.sqlite import file_locks, files
from musicsvc.store.engine.sqlite.database import SqliteDatabase
from musicsvc.store.engine.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

T = TypeVar("T")
SIDES = ("-wal", "-shm", "")  # the file itself last: a new one beside an old WAL would take it for its own
log = logging.getLogger("musicsvc")


class LogFile(Log):
    """The log in a file of its own, so that its size and its faults are not those of the data."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self.path = path
        self._changing = threading.Lock()
        self._store: SqliteStore | None = None

    def prepare(self) -> None:
        """Open the file; one that is missing is made, one that is damaged is kept aside and begun anew."""
        with self._changing:
            if self._store is not None and not self._store.in_place():
                self._close()
            if self._store is None:
                self._store = _opened(self.path)

    def open_existing(self) -> bool:
        """Open the file as it is; it is neither made nor mended."""
        with self._changing:
            if self._store is None and self.path.exists():
                try:
                    self._store = SqliteStore(self.url, log=True)
                except Damaged:
                    told = (
                        f"The activity log {self.path} is damaged. The next server keeps it aside and begins a new one."
                    )
                    raise Damaged(told) from None
                except files.Foreign:
                    raise Failure(_foreign(self.path)) from None
        return self._store is not None and self._store.read(activity_log.is_made).result()

    def replace(self) -> None:
        """Keep the file aside and begin a new one, unless another process was first."""
        with self._changing:
            if self._store is not None:
                with _alone(self.path):
                    if self._store.in_place():
                        _set_aside(self.path)
                self._close()
        self.prepare()

    def read(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on the file."""
        return self._open().read(unit)

    def write(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on the file."""
        return self._open().write(unit)

    def _open(self) -> SqliteStore:
        if self._store is None:
            raise Unavailable("The activity log is not open.")
        return self._store

    def close(self) -> None:
        """Finish what is under way."""
        with self._changing:
            self._close()

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


def default_file(data: Path) -> Path:
    """The log's file of this database: `activity.db` for `musicsvc.db`, a name of its own for every other."""
    return data.with_name("activity.db" if data.name == "musicsvc.db" else f"{data.stem}-activity.db")


def _opened(path: Path) -> SqliteStore:
    """The file, open. Raises Failure where it is another program's, or the disk does not let us."""
    try:
        files.create(path, files.LOG_ID)
        with _alone(path):
            try:
                return _migrated(path)
            except Damaged:
                _set_aside(path)
            files.create(path, files.LOG_ID)
            return _migrated(path)
    except files.Foreign:
        raise Failure(_foreign(path)) from None
    except OSError as error:
        raise Failure(f"The activity log {path} cannot be made: {error.strerror}.") from None
    except files.ERRORS as error:
        raise Failure(f"The activity log {path} cannot be made: {error}.") from None


def _foreign(path: Path) -> str:
    return f"{path} is no activity log, and is left alone. Point activity.file elsewhere."


def _migrated(path: Path) -> SqliteStore:
    store = SqliteStore(f"sqlite:///{path}", log=True)
    try:
        database = SqliteDatabase(path, {"journal_mode": "WAL", "synchronous": "NORMAL"})
        try:
            activity_log.migrate(database)
        except files.ERRORS as error:
            raise files.translate(error, path) from error
        finally:
            database.close_all()
    except BaseException:
        store.close()
        raise
    return store


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time makes, migrates or replaces the file."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        file_locks.acquire(lock)
        yield
    finally:
        os.close(lock)


def _set_aside(path: Path) -> None:
    """Give the file, and what SQLite keeps beside it, a name that is free."""
    names = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    for side in SIDES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + side).rename(aside.with_name(aside.name + side))
    log.warning("the activity log %s could not be used; it is now %s, and a new one is begun", path, aside)
