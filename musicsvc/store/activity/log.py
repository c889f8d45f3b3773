"""Open and check the activity log. With SQLite it is a separate file, with PostgreSQL a table of the database."""

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from musicsvc.errors import Failure
from musicsvc.store.activity.log_store import Log, exists, migrate, schema_problems
from musicsvc.store.opening import open_unchecked
from musicsvc.store.schema import schema

T = TypeVar("T")


class LogTable(Log):
    """The activity log as a PostgreSQL table. It uses its own connections, so that requests do not wait for logging."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._store = open_unchecked(url)
        self._prepared = False

    def prepare(self) -> None:
        if not self._prepared:
            with schema.migrating(self.url) as database:
                migrate(database)
            self._prepared = True

    def open_existing(self) -> bool:
        return self.read(exists).result()

    def read(self, unit: Callable[[], T]) -> Future[T]:
        return self._store.read(unit)

    def write(self, unit: Callable[[], T]) -> Future[T]:
        return self._store.write(unit)

    def close(self) -> None:
        self._store.close()


def build(url: str, file: Path | None = None) -> Log:
    """Return the unopened log of the database at `url`. `file` is the setting `activity.file` (SQLite only)."""
    if not url.startswith("sqlite:///"):
        return LogTable(url)
    from musicsvc.store.activity.log_file import LogFile, default_file  # noqa: PLC0415 - loads the SQLite driver

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


def problems(url: str, file: Path | None = None) -> list[str]:
    """Return the problems of the activity log.

    Raises Damaged or Outdated if the next start of the server repairs the log, Failure if it cannot be read.
    """
    with build(url, file) as log:
        return log.read(schema_problems).result() if log.open_existing() else []
