"""The store of the activity log: its interface, and its schema on both kinds of database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playhouse.migrations import Runner
from playhouse.schema_diff import diff_models

from musicsvc.errors import Damaged, Failure
from musicsvc.store.engine.binding import bound, current
from musicsvc.store.engine.dialect import is_sqlite
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Activity

if TYPE_CHECKING:
    from peewee import Database

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "log"
HISTORY = "activity_migration"


class Outdated(Failure):
    """The schema of the log is older than the program."""


class Log(Store):
    """The activity log; raises Unavailable until `prepare` has run."""

    def prepare(self) -> None:
        """Create, repair or migrate the log where necessary; blocking, harmless when repeated.

        Raises Failure where that is impossible for now.
        """
        raise NotImplementedError

    def open_existing(self) -> bool:
        """Open the log for reading, without changing it. Return False where there is none.

        Raises Failure where it cannot be read.
        """
        raise NotImplementedError

    def replace(self) -> None:
        """Replace a damaged log file by a new one; the old one is kept under another name."""

    def changes(self) -> None:
        """Return None: nothing read from the log is cached."""


def migrate(database: Database) -> list[str]:
    """Bring the log to the current schema under the caller's lock. Return the migrations applied.

    Raises Damaged where a newer program created the log.
    """
    with bound(database):
        have, want = applied(), known()
        if have - want:
            raise Damaged("The activity log was created by a newer musicsvc.")
        names: list[str] = Runner(database, str(MIGRATIONS), table_name=HISTORY).up() if want - have else []
        return names


def exists() -> bool:
    """Return whether the database has a log. Raises Outdated where its schema is not the current one."""
    have = applied()
    if have and have != known():
        raise Outdated("The activity log was created by another version of musicsvc. Run: musicsvc db upgrade")
    return bool(have)


def known() -> set[str]:
    return {path.stem for path in MIGRATIONS.glob("[0-9]*.py")}


def applied() -> set[str]:
    if HISTORY not in current().get_tables():
        return set()
    return {name for (name,) in fetch(f"SELECT name FROM {HISTORY}")}  # noqa: S608 - a constant


def schema_problems() -> list[str]:
    """Return the integrity errors of the log and its differences from the model, one a line."""
    found: list[str] = []
    if is_sqlite():
        found += [str(row[0]) for row in current().execute_sql("PRAGMA integrity_check") if row[0] != "ok"]
    return found + str(diff_models(current(), [Activity]) or "").splitlines()
