"""The activity log: a separate SQLite file, created if missing and replaced if damaged, or a table of PostgreSQL."""

import itertools
import logging
import os
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path

from peewee import Database

from musicsvc import descriptors
from musicsvc.errors import Damaged, Failure, Outdated, Unavailable
from musicsvc.store.engine.sql import T, bound, is_sqlite
from musicsvc.store.engine.sqlite import file_locks, files
from musicsvc.store.engine.sqlite.files import SqliteDatabase
from musicsvc.store.engine.sqlite.store import SqliteStore
from musicsvc.store.engine.store import Store
from musicsvc.store.models import LOG_TABLES
from musicsvc.store.opening import open_unchecked
from musicsvc.store.schema import history, schema

# For units of work on the log, which are small: on PostgreSQL, they fail after that.
READ_SECONDS, WRITE_SECONDS = 30.0, 6.0
MIGRATION_SECONDS = 8.0  # of a server, which tries again
MIGRATIONS = Path(__file__).parents[1] / "migrations" / "log"
HISTORY = "activity_migration"
SIDES = ("-wal", "-shm", "")  # the database file last, because a new one would use an old WAL beside it
log = logging.getLogger("musicsvc")


class Log(Store):
    """The activity log. Until `prepare` or `open_existing` was called, all other methods may raise Unavailable."""

    def prepare(self) -> None:
        """Open the log; create, repair or migrate it if necessary. May be repeated. Raises Failure if this fails."""
        raise NotImplementedError

    def open_existing(self) -> bool:
        """Open the log without changing it. Return False if there is no log. Raises Failure if it cannot be read."""
        raise NotImplementedError

    def replace(self) -> None:
        """Rename a damaged log file and create a new one. Does nothing if the log is a table."""

    def changes(self) -> None:
        """Return None, because the log has no cache that changes could invalidate."""

    @abstractmethod
    def _open(self) -> Store:
        """Return the store that contains the log. Raises Unavailable if it is not open."""

    def read(self, unit: Callable[[], T], *, within: float | None = READ_SECONDS, patient: bool = True) -> Future[T]:
        return self._open().read(unit, within=within, patient=patient)

    def write(
        self,
        unit: Callable[[], T],
        *,
        urgent: bool = False,
        counters_only: bool = False,
        within: float | None = WRITE_SECONDS,
    ) -> Future[T]:
        return self._open().write(unit, urgent=urgent, counters_only=counters_only, within=within)


class LogFile(Log):
    """The activity log in a separate file, so that neither its size nor damage to it affects the database."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self.path = path
        self._changing = threading.Lock()
        self._store: SqliteStore | None = None

    def prepare(self) -> None:
        """Open the file. Create it if it is missing; replace it if it is unusable.

        Raises Failure if its folder was moved, which could not be put back beside a new one.
        """
        with self._changing:
            if self._store is not None and not self._store.in_place():
                if not self.path.parent.is_dir():
                    raise Failure(f"The folder of the activity log {self.path} was moved or deleted.")
                self._close()
            if self._store is None:
                self._store = _open_or_create(self.path)

    def open_existing(self) -> bool:
        """Open the log if its file exists. Return whether it has a schema.

        Raises `Damaged` if the file is damaged, and `Failure` if it is not an activity log.
        """
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


class LogTable(Log):
    """The activity log as a PostgreSQL table. It uses its own threads, so that requests do not wait for logging."""

    def __init__(self, url: str, beside: Store | None, direct_url: str | None) -> None:
        self.url = url
        self._store = open_unchecked(url) if beside is None else beside.beside()
        self._direct_url = direct_url or url
        self._migration_seconds = inf if beside is None else MIGRATION_SECONDS
        self._prepared = False

    def prepare(self) -> None:
        if not self._prepared and not self.read(_is_current).result():
            from musicsvc.store.engine.postgres.waiting import Limits, limited  # noqa: PLC0415 - loads the driver

            with (
                limited(Limits(time.monotonic() + self._migration_seconds)),
                schema.migrating(self._direct_url) as database,
            ):
                migrate(database)
        self._prepared = True

    def open_existing(self) -> bool:
        return self.read(exists).result()

    def _open(self) -> Store:
        return self._store

    def close(self) -> None:
        self._store.close()


def build(url: str, file: Path | None = None, *, beside: Store | None = None, direct_url: str | None = None) -> Log:
    """Return the unopened log of the database at `url`. `file` is the setting `activity.file` (SQLite only).

    `beside`: the open store of the database, whose connections the log uses. `direct_url`: the URL of the database
    past a pooler (PostgreSQL only).
    """
    if not url.startswith("sqlite:///"):
        return LogTable(url, beside, direct_url)
    return LogFile(file or default_file(Path(url.removeprefix("sqlite:///"))))


def create(url: str, file: Path | None = None) -> None:
    with build(url, file) as log:
        log.prepare()


def check(url: str, file: Path | None = None) -> list[str]:
    """Return the problems of the activity log, or the failure to open the log. A missing log has no problems."""
    try:
        found = problems(url, file)
    except Failure as failure:
        found = [failure.message]
    return [f"activity log: {line}" for line in found]


def problems(url: str, file: Path | None, *, beside: Store | None = None) -> list[str]:
    """Return the problems of the activity log. `beside`: the open store of the database, whose connections it uses.

    Raises Damaged or Outdated if the next start of the server repairs the log, Failure if it cannot be read.
    """
    with build(url, file, beside=beside) as log:
        return log.read(schema_problems).result() if log.open_existing() else []


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
    with descriptors.opened(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR) as lock:
        file_locks.acquire(lock)
        yield


def _rename(path: Path, reason: str) -> None:
    """Rename the log file and its WAL, so that a new log can be created."""
    names = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    for side in SIDES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + side).rename(aside.with_name(aside.name + side))
    log.warning("the activity log %s %s; renamed it to %s and created a new one", path, reason, aside)


def migrate(database: Database, folder: Path = MIGRATIONS) -> list[str]:
    """Apply the missing migrations of `folder` to the log, in one transaction. Return their names.

    The caller must prevent concurrent migrations. Raises Outdated if the log cannot be upgraded.
    """
    with bound(database), database.atomic():
        have = schema.applied(HISTORY)
        if problem := _refusal(have, folder):
            raise Outdated(problem)
        names = history.missing(have, folder)
        for name in names:
            schema.apply(database, name, folder, HISTORY)
        return names


def exists(folder: Path = MIGRATIONS) -> bool:
    """Return True if the current database contains a log. Raises Outdated if this version cannot use its schema."""
    have = schema.applied(HISTORY)
    if problem := _refusal(have, folder):
        raise Outdated(problem)
    if have and history.missing(have, folder):
        raise Outdated(f"The activity log is of an older schema ({max(have)}). Run: musicsvc db upgrade")
    return bool(have)


def _is_current() -> bool:
    with suppress(Outdated):
        return exists()
    return False


def _refusal(have: history.History, folder: Path) -> str | None:
    """Return an error message if this version of musicsvc can neither use nor upgrade a log with these migrations."""
    if history.too_old("", have):
        return "The activity log was created by another version of musicsvc. Run: musicsvc db upgrade"
    return history.too_new("The activity log", have, folder)


def schema_problems() -> list[str]:
    """Return the integrity errors of the log, and the differences between its schema and the expected one."""
    found = schema.corruption() if is_sqlite() else []
    newer = bool(history.unknown(schema.applied(HISTORY), MIGRATIONS))
    return found + schema.lacking(LOG_TABLES, newer=newer)
