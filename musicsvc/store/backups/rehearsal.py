"""Find out what an upgrade would do and how long it would take, without changing the database.

On SQLite the upgrade is made on a copy, which is deleted. On PostgreSQL it is estimated: migrations lock their tables,
so that even one that is rolled back would hold up the nodes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from musicsvc.clock import Clock
from musicsvc.errors import Failure
from musicsvc.store.backups import create
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.sql import bound, current, fetch
from musicsvc.store.engine.sqlite import file_locks, files
from musicsvc.store.engine.sqlite.files import SqliteDatabase
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import describe
from musicsvc.store.schema import history, schema

BYTES_PER_SECOND = 5_000_000  # of tables and indexes, while PostgreSQL changes every row: measured 7.3 MB
SIZES = "SELECT pg_total_relation_size(to_regclass(name)) FROM unnest(?::text[]) AS asked (name)"


@dataclass(frozen=True, slots=True)
class Plan:
    """The migrations that an upgrade would apply. `schema`: the newest one that the database has, None if it is empty.

    `oldest_program`: the oldest program that may use the schema that they make.
    """

    schema: str | None
    migrations: list[str]
    oldest_program: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an upgrade. `size`: bytes of the database, on PostgreSQL of the `tables` that the migrations name.

    `backup`, `seconds`: the duration of the backup, and of the migrations, in seconds.
    """

    size: int = 0
    seconds: float = 0.0
    backup: float = 0.0
    tables: tuple[str, ...] = ()


def plan(store: Store, folder: Path | None) -> Plan:
    """Return what an upgrade would do. Raises Failure if it would be refused."""
    name = describe(store.url)
    have, unfinished = store.read(lambda: (schema.applied(), schema.unfinished(name))).result()
    if problem := unfinished or history.refusal(name, have, folder):
        raise Failure(problem)
    names, folder = history.missing(have, folder), folder or history.MIGRATIONS
    then = {**have, **{name: schema.load(name, folder).oldest_program for name in names}}
    return Plan(max(have, default=None), names, history.oldest_program(then), folder)


def measure(path: Path, plan: Plan, target: Path, clock: Clock, on_progress: Callable[[float, float], None]) -> Cost:
    """Make the upgrade on a copy of a SQLite database, which is created like the backup `target` and deleted.

    Raises Failure if it fails.
    """
    files.examine(path)
    use = file_locks.use(path)
    try:
        with backup_folder.draft(target) as draft:
            began = clock.monotonic()
            create.copy(path, draft, on_progress)
            copied = clock.monotonic()
            size = draft.path.stat().st_size
            _upgrade(draft.path, plan, on_progress)
            return Cost(size, clock.monotonic() - copied, copied - began)
    finally:
        use.release()


def _upgrade(copy: Path, plan: Plan, on_progress: Callable[[float, float], None]) -> None:
    database = SqliteDatabase(copy, {"journal_mode": "delete"})
    try:
        with bound(database):
            schema.apply_all(database, plan.migrations, plan.folder, on_progress)
    except files.ERRORS as error:
        raise Failure(f"The database cannot be upgraded: {error}. Nothing was changed.") from None
    finally:
        database.close_all()


def estimate(store: Store, plan: Plan) -> Cost:
    """Estimate an upgrade of a PostgreSQL database from the sizes of the tables that the migrations name."""
    texts = [(plan.folder / f"{name}.py").read_text("utf-8") for name in plan.migrations]
    words = {word for text in texts for word in re.findall(r"\w+", text)}

    def look() -> Cost:
        tables = sorted(words & set(current().get_tables()))
        size = sum(size for (size,) in fetch(SIZES, tables))
        return Cost(size, size / BYTES_PER_SECOND, tables=tuple(tables))

    return store.read(look).result()
