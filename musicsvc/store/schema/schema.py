"""The schema of a store: what it is, whether it is ours, how it is brought to the newest state."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from playhouse.migrations import Runner
from playhouse.schema_diff import diff_models

from musicsvc import extras
from musicsvc.errors import Failure
from musicsvc.store import models
from musicsvc.store.engine.binding import bound, current
from musicsvc.store.engine.dialect import is_sqlite
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.url import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from peewee import Database

    from musicsvc.store.engine.store import Store

MIGRATIONS = Path(__file__).parents[1] / "migrations"
HISTORY = "schema_migration"
ADVISORY_LOCK = 0x4D535643


def known() -> list[str]:
    """The names of the migrations that this program has, oldest first."""
    return sorted(path.stem for path in MIGRATIONS.glob("[0-9]*.py"))


def applied() -> list[str]:
    """The names of the migrations that the database has had, oldest first; inside a unit."""
    if HISTORY not in current().get_tables():
        return []
    rows = current().execute_sql(f"SELECT name FROM {HISTORY}").fetchall()  # noqa: S608 - a constant
    return sorted(name for (name,) in rows)


def require_current(store: Store) -> None:
    """Raises Failure that names the database and the way out, where it is of another schema."""
    if problem := store.read(lambda: fault(describe(store.url))).result():
        raise Failure(problem)


def fault(named: str = "The database") -> str | None:
    """What keeps this program from working on the database, None where nothing does; inside a unit.

    `named`: what it is called, which a caller from elsewhere is not told.
    """
    have, want = applied(), known()
    if have == want:
        return None
    if set(have) - set(want):
        return f"{named} was made by a newer musicsvc. Install that version, or restore an older backup."
    if not have:
        return f"{named} has no tables yet. Run: musicsvc init"
    return f"{named} is of an older schema ({have[-1]}). Run: musicsvc db upgrade"


def upgrade(url: str, save: Callable[[str], None] | None = None) -> list[str]:
    """Apply the migrations that are missing, one transaction each; two at once wait for each other.

    `save` is told the first of them before anything is changed, where there is anything to lose: it makes a backup.
    Returns the names applied. Raises Failure where the database is newer than the program, or, on SQLite, in use.
    """
    with migrating(url) as database, bound(database):
        have = applied()
        if set(have) - set(known()):
            raise Failure(str(fault(describe(url))))
        missing = [name for name in known() if name not in have]
        if not missing:
            return []
        with _alone(url):
            if have and save is not None:
                save(missing[0])
            names: list[str] = Runner(database, str(MIGRATIONS), table_name=HISTORY).up()
            return names


def problems() -> list[str]:
    """What is wrong with the database, a line each: integrity, foreign keys, schema against models; inside a unit."""
    return damage() + differences()


def damage() -> list[str]:
    """What is broken in the database's file, a line each; a server of PostgreSQL looks after its own."""
    if not is_sqlite():
        return []
    found = [f"integrity: {row[0]}" for row in current().execute_sql("PRAGMA integrity_check") if row[0] != "ok"]
    return found + [
        f"foreign keys: row {row[1]} of {row[0]} points at nothing in {row[2]}"
        for row in current().execute_sql("PRAGMA foreign_key_check")
    ]


def differences() -> list[str]:
    """Where the tables are not those of the models, a line each."""
    found = diff_models(current(), models.tables())
    return [f"schema: {line}" for line in str(found).splitlines()] if found else []


def migrating(url: str) -> AbstractContextManager[Database]:
    """A connection of its own with the lock that lets one migration run at a time; raises Failure for its faults."""
    if url.startswith("sqlite:///"):
        return _migrating_sqlite(Path(url.removeprefix("sqlite:///")))
    return _migrating_postgres(url)


def _alone(url: str) -> AbstractContextManager[None]:
    """Nobody else has the SQLite database open; a server of PostgreSQL locks each table as it needs."""
    if not url.startswith("sqlite:///"):
        return nullcontext()
    return file_locks.exclusive(Path(url.removeprefix("sqlite:///")))


@contextmanager
def _migrating_sqlite(path: Path) -> Iterator[Database]:
    from musicsvc.store.engine.sqlite import database, files  # noqa: PLC0415 - each store loads its own driver

    files.examine(path)
    with file_locks.one_at_a_time(path):
        opened = database.SqliteDatabase(path, {"journal_mode": "WAL"})
        try:
            yield opened
        except files.ERRORS as error:
            raise _told(error, files.translate(error, path)) from error
        finally:
            opened.close_all()


@contextmanager
def _migrating_postgres(url: str) -> Iterator[Database]:
    with extras.required("postgres"):
        from musicsvc.store.engine import postgres  # noqa: PLC0415 - see above

    database = postgres.PostgresDatabase(url)
    try:
        # One migration waits for the other however long it takes; for a table in use as long as a unit would.
        database.execute_sql("SET lock_timeout = 0")
        database.execute_sql(f"SELECT pg_advisory_lock({ADVISORY_LOCK})")
        database.execute_sql("RESET lock_timeout")
        yield database
    except postgres.ERRORS as error:
        raise _told(error, postgres.translate(error)) from error
    finally:
        database.close_all()


def _told(error: Exception, translated: BaseException) -> Failure:
    """What a user is told of an error of the database in a migration."""
    if isinstance(translated, Failure):
        return translated
    return Failure(f"The database could not be brought to the newest schema: {error}.")
