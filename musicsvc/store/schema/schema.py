"""Apply migrations, and check the database schema against the migrations and the models."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path

from peewee import Database, DatabaseError
from playhouse.migrations import Runner
from playhouse.schema_diff import diff_models

from musicsvc import extras
from musicsvc.errors import Failure, NoDatabase
from musicsvc.store import models
from musicsvc.store.engine import list_blocks, name_index
from musicsvc.store.engine.sql import bound, current, is_sqlite
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import describe, path_of

MIGRATIONS = Path(__file__).parents[1] / "migrations"
HISTORY = "schema_migration"
BASELINE = "0001_baseline"  # the first migration, also of the activity log
ADVISORY_LOCK = 0x4D535643
BEGIN_ANEW = "move it away, run musicsvc init, and import your files again."
_listener: ContextVar[Callable[[float, float], None] | None] = ContextVar("musicsvc_migration", default=None)
VIRTUAL_TABLES = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'virtual'"


def available(folder: Path | None = None) -> list[str]:
    """Return the names of the migrations in `folder`, oldest first. Default: all of this version of the service."""
    return sorted(path.stem for path in (folder or MIGRATIONS).glob("[0-9]*.py"))


def applied(history: str = HISTORY) -> list[str]:
    """Return the names of the migrations that were applied to the current database, oldest first."""
    if history not in current().get_tables():
        return []
    rows = current().execute_sql(f"SELECT name FROM {history}").fetchall()  # noqa: S608 - a constant
    return sorted(name for (name,) in rows)


def missing(have: Sequence[str], folder: Path | None = None) -> list[str]:
    """Return the names of the migrations in `folder` that are not in `have`, oldest first."""
    return [name for name in available(folder) if name not in have]


def too_old(name: str, have: Sequence[str]) -> str | None:
    """Return an error message, beginning with `name`, if a database with the migrations `have` precedes the first."""
    if not have or BASELINE in have:
        return None
    return f"{name} was written before version 0.1.0 and cannot be upgraded: {BEGIN_ANEW}"


def refusal(name: str, have: Sequence[str], folder: Path | None = None) -> str | None:
    """Return an error message, beginning with `name`, if a database with the migrations `have` cannot be upgraded."""
    if problem := too_old(name, have):
        return problem
    if set(have) - set(available(folder)):
        return f"{name} was written by a newer musicsvc. Install that version, or restore an older backup."
    return None


def require_current(store: Store, folder: Path | None = None) -> None:
    """Raise Failure, with a remedy, if the database schema is older or newer than this version of the service.

    Raises NoDatabase if there is none.
    """
    problem, empty = store.read(lambda: (fault(describe(store.url), folder), not applied())).result()
    if problem:
        raise (NoDatabase if empty else Failure)(problem)


def fault(name: str = "The database", folder: Path | None = None) -> str | None:
    """Return an error message, beginning with `name`, if this version cannot use the current database, else None."""
    have = applied()
    if not have:
        return f"{name} has no tables yet. Run: musicsvc init"
    if (problem := refusal(name, have, folder)) or not missing(have, folder):
        return problem
    return f"{name} is of an older schema ({have[-1]}). Run: musicsvc db upgrade"


def upgrade(
    url: str,
    save: Callable[[str], None] | None = None,
    on_progress: Callable[[float, float], None] = lambda _done, _total: None,
    folder: Path | None = None,
) -> list[str]:
    """Apply the missing migrations of `folder` and return their names.

    Before an existing database is changed, `save` is called with the first missing migration's name to create a backup.
    `on_progress` gets the number of applied migrations, with a fraction for the running one, and of all missing ones.
    Raises Failure if the database is too old, too new or in use.
    """
    with migrating(url) as database, bound(database):
        have = applied()
        if problem := refusal(describe(url), have, folder):
            raise Failure(problem)
        names = missing(have, folder)
        if not names:
            return []
        with _exclusive(url):
            if have and save is not None:
                save(names[0])
            runner = Runner(database, str(folder or MIGRATIONS), table_name=HISTORY)
            for number, name in enumerate(names):
                on_progress(number, len(names))
                token = _listener.set(partial(_pass_on, on_progress, number, len(names)))
                try:
                    runner.up(name)
                finally:
                    _listener.reset(token)
            on_progress(len(names), len(names))
            return names


def create(url: str) -> bool:
    """Create a database, on PostgreSQL only its tables. Return False if another process was first.

    Do not call this for a database with an older schema: it would be upgraded without a backup.
    """
    if path := path_of(url):
        from musicsvc.store.engine.sqlite import files  # noqa: PLC0415 - loads the driver only if used

        files.create(path)
    return bool(upgrade(url))


def report_progress(done: float, total: float) -> None:
    """Report how much of the running migration is done. For migrations that take long."""
    if (listener := _listener.get()) is not None:
        listener(done, total)


def _pass_on(on_progress: Callable[[float, float], None], before: int, count: int, done: float, total: float) -> None:
    on_progress(before + done / max(1, total), count)


def problems() -> list[str]:
    """Return one line for each defect of the database file, each unexpected table or column, and each wrong count."""
    return damage() + (differences() or list_blocks.differences() + name_index.differences())


def damage() -> list[str]:
    """Return one line for each defect of a SQLite file. Return no lines for PostgreSQL, which checks its own files."""
    if not is_sqlite():
        return []
    for (table,) in current().execute_sql(VIRTUAL_TABLES).fetchall():
        # FTS5 notices what other connections have merged when it searches, but not when its integrity is checked.
        with suppress(DatabaseError):
            current().execute_sql(f"SELECT 1 FROM {table} WHERE {table} MATCH 'any' LIMIT 1")  # noqa: S608 - our tables
    found = [f"integrity: {row[0]}" for row in current().execute_sql("PRAGMA integrity_check") if row[0] != "ok"]
    return found + [
        f"foreign keys: row {row[1]} of {row[0]} refers to a missing row of {row[2]}"
        for row in current().execute_sql("PRAGMA foreign_key_check")
    ]


def differences() -> list[str]:
    """Return one line for each difference between the tables in the database and the models."""
    found = diff_models(current(), models.tables())
    return [f"schema: {line}" for line in str(found).splitlines()] if found else []


def migrating(url: str) -> AbstractContextManager[Database]:
    """Connect for migrations in a `with` block, one process at a time. Database errors in the block become Failure."""
    path = path_of(url)
    return _migrating_sqlite(path) if path else _migrating_postgres(url)


def _exclusive(url: str) -> AbstractContextManager[None]:
    """Return a context manager that locks a SQLite database exclusively. For PostgreSQL, it does nothing."""
    path = path_of(url)
    return file_locks.exclusive(path) if path else nullcontext()


@contextmanager
def _migrating_sqlite(path: Path) -> Iterator[Database]:
    from musicsvc.store.engine.sqlite import files  # noqa: PLC0415 - loads the driver only if used

    files.examine(path)
    with file_locks.one_at_a_time(path):
        opened = files.SqliteDatabase(path, {"journal_mode": "WAL"})
        try:
            yield opened
        except files.ERRORS as error:
            raise _failure(error, files.translate(error, path)) from error
        finally:
            opened.close_all()


@contextmanager
def _migrating_postgres(url: str) -> Iterator[Database]:
    with extras.required("postgres"):
        from musicsvc.store.engine.postgres import database as postgres  # noqa: PLC0415 - the same

    database = postgres.PostgresDatabase(url)
    try:
        # Migrations wait for each other without limit, but for a table in use no longer than a unit of work does.
        database.execute_sql("SET lock_timeout = 0")
        database.execute_sql(f"SELECT pg_advisory_lock({ADVISORY_LOCK})")
        database.execute_sql("RESET lock_timeout")
        yield database
    except postgres.ERRORS as error:
        raise _failure(error, postgres.translate(error)) from error
    finally:
        database.close_all()


def _failure(error: Exception, translated: BaseException) -> Failure:
    """Return `translated` if it is a Failure, else a Failure with `error` as the reason why the upgrade failed."""
    if isinstance(translated, Failure):
        return translated
    return Failure(f"The database could not be upgraded: {error}.")
