"""The interface of the activity log, and its schema for SQLite and PostgreSQL."""

from pathlib import Path

from peewee import Database
from playhouse.migrations import Runner
from playhouse.schema_diff import diff_models

from musicsvc.errors import Failure
from musicsvc.store.engine.sql import bound, current, is_sqlite
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Activity
from musicsvc.store.schema import schema

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "log"
HISTORY = "activity_migration"


class Outdated(Failure):
    """The activity log has the schema of another version of musicsvc."""


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


def migrate(database: Database, folder: Path = MIGRATIONS) -> list[str]:
    """Apply the missing migrations of `folder` to the log, in one transaction. Return their names.

    The caller must prevent concurrent migrations. Raises Outdated if the log cannot be upgraded.
    """
    with bound(database), database.atomic():
        have = schema.applied(HISTORY)
        if schema.refusal("", have, folder):
            raise Outdated("The activity log was created by another version of musicsvc.")
        if not schema.missing(have, folder):
            return []
        names: list[str] = Runner(database, str(folder), table_name=HISTORY).up()
        return names


def exists() -> bool:
    """Return True if the current database contains a log. Raises Outdated if its schema is of another version."""
    have = schema.applied(HISTORY)
    if have and have != schema.available(MIGRATIONS):
        raise Outdated("The activity log was created by another version of musicsvc. Run: musicsvc db upgrade")
    return bool(have)


def schema_problems() -> list[str]:
    """Return the integrity errors of the log, and the differences between its schema and the expected one."""
    found: list[str] = []
    if is_sqlite():
        found += [str(row[0]) for row in current().execute_sql("PRAGMA integrity_check") if row[0] != "ok"]
    return found + str(diff_models(current(), [Activity]) or "").splitlines()
