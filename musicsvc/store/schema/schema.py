"""Apply migrations, and check the database schema against the migrations and the models."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from peewee import Database, DatabaseError, Model
from playhouse.migrate import SchemaMigrator
from playhouse.schema_diff import diff_models

from musicsvc import extras
from musicsvc.errors import Failure, NoDatabase, Outdated
from musicsvc.store import models
from musicsvc.store.engine import list_blocks, name_index
from musicsvc.store.engine.sql import assigned, bound, current, is_sqlite
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import describe, path_of
from musicsvc.store.schema.history import MIGRATIONS, TABLE, History, missing, refusal, unknown

HISTORY = "schema_migration"
KEPT = "Of the migrations, {} has changed nothing, and those before it are kept. To go on, run the command again."
UNFINISHED = "unfinished_copy"  # the table of a database to which another one is being copied
ADVISORY_LOCK = 0x4D535643
_listener: ContextVar[Callable[[float, float], None] | None] = ContextVar("musicsvc_migration", default=None)
VIRTUAL_TABLES = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'virtual'"


def applied(history: str = HISTORY) -> History:
    """Return the migrations that were applied to the current database."""
    if history not in current().get_tables():
        return {}
    return dict(current().execute_sql(f"SELECT name, oldest_program FROM {history} ORDER BY name").fetchall())  # noqa: S608 - a constant


def require_current(store: Store, folder: Path | None = None) -> None:
    """Raise Outdated, with a remedy, if this version of the service cannot use the schema of the database.

    Raises NoDatabase if there is none.
    """
    problem, empty = store.read(lambda: (fault(describe(store.url), folder), not applied())).result()
    if problem:
        raise (NoDatabase if empty else Outdated)(problem)


def fault(name: str = "The database", folder: Path | None = None) -> str | None:
    """Return an error message, beginning with `name`, if this version cannot use the current database, else None."""
    return unfinished(name) or outdated(name, folder)


def unfinished(name: str) -> str | None:
    """Return an error message, beginning with `name`, if the current database is an unfinished copy, else None."""
    source = unfinished_copy()
    if source and missing(applied()):
        return f"{name} is an unfinished copy of {source}, begun by an older musicsvc. Delete it, and copy again."
    return source and f"{name} is an unfinished copy of {source}. Continue it with: musicsvc db copy FROM TO"


def unfinished_copy() -> str | None:
    """Return the database of which the current one is an unfinished copy, or None."""
    if UNFINISHED not in current().get_tables():
        return None
    return str(current().execute_sql(f"SELECT source FROM {UNFINISHED}").fetchone()[0])  # noqa: S608 - a constant


def outdated(name: str, folder: Path | None = None) -> str | None:
    """Return an error message, beginning with `name`, if the schema of the current database is of another version."""
    have = applied()
    if not have:
        return f"{name} has no tables yet. Run: musicsvc init"
    if (problem := refusal(name, have, folder)) or not missing(have, folder):
        return problem
    return f"{name} is of an older schema ({max(have)}). Run: musicsvc db upgrade"


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
        if problem := unfinished(describe(url)) or refusal(describe(url), have, folder):
            raise Failure(problem)
        names = missing(have, folder)
        if not names:
            return []
        with _exclusive(url):
            if have and save is not None:
                save(names[0])
            apply_all(database, names, folder, on_progress)
            return names


def apply_all(
    database: Database, names: Sequence[str], folder: Path | None, on_progress: Callable[[float, float], None]
) -> None:
    """Apply migrations to the current database. `on_progress` as in `upgrade`."""
    for number, name in enumerate(names):
        on_progress(number, len(names))
        listener: Callable[[float, float], None] = partial(_pass_on, on_progress, number, len(names))
        try:
            with assigned(_listener, listener):
                apply(database, name, folder or MIGRATIONS)
        except Exception as error:
            error.add_note(KEPT.format(name))
            raise
    on_progress(len(names), len(names))


def create(url: str) -> bool:
    """Create a database, on PostgreSQL only its tables. Return False if another process was first.

    Do not call this for a database with an older schema: it would be upgraded without a backup.
    """
    if path := path_of(url):
        from musicsvc.store.engine.sqlite import files  # noqa: PLC0415 - loads the driver only if used

        files.create(path)
    return bool(upgrade(url))


def apply(database: Database, name: str, folder: Path, history: str = HISTORY) -> None:
    """Apply a migration and record it, in one transaction."""
    module = load(name, folder)
    migrator = SchemaMigrator.from_database(database)
    record = f"INSERT INTO {history} (name, oldest_program) VALUES ({database.param}, {database.param})"  # noqa: S608 - constants
    database.execute_sql(TABLE.format(history))
    with migrator.migration_context():
        module.up(migrator, database)
        database.execute_sql(record, (name, module.oldest_program))


def load(name: str, folder: Path = MIGRATIONS) -> ModuleType:
    """Return the module of a migration, with its function `up` and its constant `oldest_program`."""
    module = ModuleType(name)
    SourceFileLoader(name, str(folder / f"{name}.py")).exec_module(module)
    return module


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
    return [f"integrity: {problem}" for problem in corruption()] + [
        f"foreign keys: row {row[1]} of {row[0]} refers to a missing row of {row[2]}"
        for row in current().execute_sql("PRAGMA foreign_key_check")
    ]


def corruption() -> list[str]:
    """Return what is wrong with the pages and indexes of the SQLite database, in lines of up to 100 defects."""
    lines = [line for (text,) in current().execute_sql("PRAGMA integrity_check") for line in str(text).splitlines()]
    return [line for line in lines if line not in {"ok", "*** in database main ***"}]


def differences() -> list[str]:
    """Return one line for each difference between the tables in the database and the models."""
    return [f"schema: {line}" for line in lacking(models.tables(), newer=bool(unknown(applied())))]


def lacking(tables: Iterable[type[Model]], *, newer: bool) -> list[str]:
    """Return one line for each table, column and index of the models that the current database has not, or otherwise.

    Further columns do no harm: this program uses them no more. `newer`: of a newer version, which may change indexes.
    """
    found = diff_models(current(), list(tables))._replace(drop_columns=[])
    if newer:
        found = found._replace(add_indexes=[], drop_indexes=[])
    return str(found).splitlines()


def migrating(url: str) -> AbstractContextManager[Database]:
    """Connect for migrations in a `with` block, one process at a time. Database errors in the block become Failure."""
    path = path_of(url)
    return _migrating_sqlite(path) if path else _migrating_postgres(url)


def await_migrations(url: str) -> None:
    """Wait until no process migrates the database."""
    with migrating(url):
        pass


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
            raise _failure(error, error, files.translate(error, path)) from error
        finally:
            opened.close_all()


@contextmanager
def _migrating_postgres(url: str) -> Iterator[Database]:
    with extras.required("postgres"):
        from musicsvc.store.engine.postgres import database as postgres  # noqa: PLC0415 - the same

    # The lock lasts as long as an idle transaction of its own, so that it works through a pooler too.
    database, lock = postgres.PostgresDatabase(url), postgres.PostgresDatabase(url)
    try:
        lock.connect()
    except postgres.ERRORS as error:
        raise postgres.refused(url, error) from error
    try:
        # Migrations wait for each other without limit, but for a table in use no longer than a unit of work does.
        without_timeouts = postgres.WITHOUT_TIMEOUTS.format(local=True)
        lock.execute_sql(f"BEGIN; {without_timeouts}; SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
        yield database
    except postgres.ERRORS as error:
        raise _failure(error, postgres.reason(error), postgres.translate(error)) from error
    finally:
        lock.close_all()
        database.close_all()


def _failure(error: BaseException, reason: object, translated: BaseException) -> Failure:
    """Return `translated` if it is a Failure, else one with the reason; and the migration that `error` stopped."""
    said = f"The database could not be upgraded: {reason}."
    failure = translated if isinstance(translated, Failure) else Failure(said)
    failure.here = " ".join([failure.here, *getattr(error, "__notes__", ())])
    return failure
