"""Where the log of calls is kept: on SQLite in a file of its own, on PostgreSQL in a table beside the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from playhouse.migrations import Runner
from playhouse.schema_diff import diff_models

from musicsvc.errors import Damaged, Failure
from musicsvc.store.engine.binding import bound, current
from musicsvc.store.engine.dialect import is_sqlite
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Activity
from musicsvc.store.opening import open_unchecked
from musicsvc.store.schema import schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from peewee import Database

T = TypeVar("T")
MIGRATIONS = Path(__file__).parents[1] / "migrations" / "log"
HISTORY = "activity_migration"


class Outdated(Failure):
    """A log of another version of the program."""


class Log(Store):
    """The store of the log; Unavailable until it is prepared."""

    def prepare(self) -> None:
        """Make, mend and migrate what has to be, so that it can be written; blocks, harmless when repeated.

        Raises Failure where that cannot be done now.
        """
        raise NotImplementedError

    def open_existing(self) -> bool:
        """Open it as it is, to be read; False where there is none yet. Raises Failure where it cannot be read."""
        raise NotImplementedError

    def replace(self) -> None:
        """Begin anew after Damaged, where the log is a file; what there was is kept aside."""

    def changes(self) -> None:
        """Nothing is cached over the log."""


class LogTable(Log):
    """The log as a table beside the data, on connections of its own, so that no request waits for it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._store = open_unchecked(url)
        self._prepared = False

    def prepare(self) -> None:
        """Make the table where there is none yet."""
        if not self._prepared:
            with schema.migrating(self.url) as database:
                migrate(database)
            self._prepared = True

    def open_existing(self) -> bool:
        """Whether there is the table."""
        return self.read(is_made).result()

    def read(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on the database."""
        return self._store.read(unit)

    def write(self, unit: Callable[[], T]) -> Future[T]:
        """Run the unit on the database."""
        return self._store.write(unit)

    def close(self) -> None:
        """Finish what is under way."""
        self._store.close()


def build(url: str, file: Path | None = None) -> Log:
    """The log of the calls of this database; `file` is the setting `activity.file`, which moves it on SQLite."""
    if not url.startswith("sqlite:///"):
        return LogTable(url)
    from musicsvc.store.activity.log_file import LogFile, default_file  # noqa: PLC0415 - the driver of the other store

    return LogFile(file or default_file(Path(url.removeprefix("sqlite:///"))))


def create(url: str, file: Path | None = None) -> None:
    """Make the log of this database's calls, or bring it to its newest state."""
    with build(url, file) as log:
        log.prepare()


def check(url: str, file: Path | None = None) -> list[str]:
    """What is wrong with the log of the calls of this database, a line each; none where there is no log yet."""
    try:
        found = problems(url, file)
    except Failure as failure:
        found = [failure.message]
    return [f"activity log: {line}" for line in found]


def problems(url: str, file: Path | None = None) -> list[str]:
    """The same; raises Failure where it cannot be read, Damaged or Outdated where a server puts that right."""
    with build(url, file) as log:
        return log.read(schema_problems).result() if log.open_existing() else []


def migrate(database: Database) -> list[str]:
    """Bring the log's table to its newest state, the caller having locked others out; the names applied.

    Raises Damaged where a newer program made it.
    """
    with bound(database):
        have, want = applied(), known()
        if have - want:
            raise Damaged("The activity log was made by a newer musicsvc.")
        names: list[str] = Runner(database, str(MIGRATIONS), table_name=HISTORY).up() if want - have else []
        return names


def is_made() -> bool:
    """Whether there is a log to be read; Failure where it is of another state; inside a unit."""
    have = applied()
    if have and have != known():
        raise Outdated("The activity log is of another musicsvc. Run: musicsvc db upgrade")
    return bool(have)


def known() -> set[str]:
    """The names of the log's migrations that this program has."""
    return {path.stem for path in MIGRATIONS.glob("[0-9]*.py")}


def applied() -> set[str]:
    """The names of the log's migrations that the database has had; inside a unit."""
    if HISTORY not in current().get_tables():
        return set()
    return {name for (name,) in fetch(f"SELECT name FROM {HISTORY}")}  # noqa: S608 - a constant


def schema_problems() -> list[str]:
    """What is wrong with the log, a line each; inside a unit on the log."""
    found: list[str] = []
    if is_sqlite():
        found += [str(row[0]) for row in current().execute_sql("PRAGMA integrity_check") if row[0] != "ok"]
    return found + str(diff_models(current(), [Activity]) or "").splitlines()
