"""Copy a database to an empty one, also while it is in use, and continue a copy that was interrupted.

Rows of the target that differ from those of the source are deleted, then all rows that the target lacks are inserted.
So a copy can end at any moment, and the same command continues it. Until it is complete, the target has a table that
prevents its use (`schema.unfinished_copy`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from peewee import Database

from musicsvc import extras
from musicsvc.errors import Failure
from musicsvc.store.activity import log as activity_log
from musicsvc.store.copying.databases import CopiedDatabase
from musicsvc.store.copying.tables import CopiedTable, Row, side_by_side, tables
from musicsvc.store.engine import bulk, list_blocks, name_index
from musicsvc.store.engine.sql import bound, fetch, run, run_many
from musicsvc.store.engine.url import path_of, without_password
from musicsvc.store.models import ActivityProgress, PlayProgress, Secret, User
from musicsvc.store.schema import history, schema
from musicsvc.store.schema.schema import UNFINISHED

OnProgress = Callable[[float, float], None]
BATCH_ROWS, BATCH_BYTES = 10_000, 8 << 20  # of one transaction
FILLED = (Secret, PlayProgress, ActivityProgress)  # which have rows in a new database
MARK = f"CREATE TABLE {UNFINISHED} (source TEXT NOT NULL, installation TEXT NOT NULL, suspended TEXT NOT NULL)"
RESUME = "Everything copied so far is kept: run the same command again to continue."


@dataclass
class Copied:
    """The result of a copy. `rows`: those of the source. `complete`: whether the target may be used."""

    rows: int = 0
    inserted: int = 0
    deleted: int = 0
    complete: bool = False


def copy(
    source: CopiedDatabase,
    target_url: str,
    log_file: Path | None = None,
    on_progress: OnProgress = lambda _done, _total: None,
) -> Copied:
    """Copy all rows of `source` to the database at `target_url`, which is created if it does not exist.

    The copy is complete if nobody else used the source meanwhile. `log_file`: the file of the target's activity log,
    if not the default. Raises Failure if the target has other data, or is in use.
    """
    with ExitStack() as stack:
        alone = stack.enter_context(source.alone())
        source.begin()
        _create(target_url, log_file)
        target = stack.enter_context(connect(target_url, log_file, writes=True))
        if not stack.enter_context(target.alone()):
            raise Failure(f"{target.name} is in use by a server or another command. Stop it, then run this again.")
        with bound(target.main), target.translated():
            _mark(source, target)
        try:
            copied = Copy(source, target, log_file, on_progress).run()
            if alone and not source.has_company():
                _finish(source, target)
                copied.complete = True
        except Failure as failure:
            raise Failure(f"{failure.here} {RESUME}") from None
    return copied


def connect(url: str, log_file: Path | None = None, *, writes: bool = False) -> CopiedDatabase:
    """Open the database at `url`. `log_file`: the file of its activity log, if not the default (SQLite only)."""
    if path := path_of(url):
        from musicsvc.store.copying.sqlite import CopiedSqliteDatabase  # noqa: PLC0415 - loads the driver only if used

        return CopiedSqliteDatabase(url, path, log_file or activity_log.default_file(path), writes=writes)
    with extras.required("postgres"):
        from musicsvc.store.copying.postgres import CopiedPostgresDatabase  # noqa: PLC0415 - the same
    return CopiedPostgresDatabase(url)


def _create(url: str, log_file: Path | None) -> None:
    """Create the database and its activity log if they do not exist. Raises Failure if the schema is not current.

    A process that is killed between two migrations leaves an older schema without accounts: the others are applied.
    """
    path = path_of(url)
    is_begun = True
    if path is None or path.exists():
        with connect(url, log_file) as opened:
            with opened.translated(), bound(opened.main):
                have, is_copy = schema.applied(), schema.unfinished_copy() is not None
                is_begun = not have or (bool(history.missing(have)) and not is_copy and not User.select().exists())
            if not is_begun:
                opened.require_current(finished=False)
                if not is_copy:
                    _require_empty(opened)  # before an activity log is created beside it
    if is_begun:
        schema.create(url)
    activity_log.create(url, log_file)


def _mark(source: CopiedDatabase, target: CopiedDatabase) -> None:
    """Mark the target as an unfinished copy. Raises Failure if it has data that is not from the same installation."""
    with bound(source.main), source.translated():
        secret = Secret.get(Secret.name == "installation")
    installation = sha256(bytes(secret.value)).hexdigest()
    if (other := schema.unfinished_copy()) is not None:
        if fetch(f"SELECT installation FROM {UNFINISHED}")[0][0] != installation:  # noqa: S608 - a constant
            raise Failure(f"{target.name} is an unfinished copy of another database, {other}. Name an empty database.")
        return
    _require_empty(target)
    name = without_password(source.url.removeprefix("sqlite:///"))
    with target.main.atomic():
        suspended = target.loosen()
        run(MARK)
        run(f"INSERT INTO {UNFINISHED} VALUES (?, ?, ?)", name, installation, suspended)  # noqa: S608 - a constant


def _require_empty(target: CopiedDatabase) -> None:
    for table in tables():
        if (database := target.database(table)) is None or table.model in FILLED:
            continue
        with target.translated(), bound(database):
            if not table.is_empty():
                raise Failure(
                    f"{target.name} is not empty: the table {table.name} has rows. Name an empty database. To see"
                    " whether it is a copy already, run: musicsvc db compare FROM TO"
                )


class Copy:
    """A running copy, table by table. Each batch of rows is committed."""

    def __init__(
        self, source: CopiedDatabase, target: CopiedDatabase, log_file: Path | None, on_progress: OnProgress
    ) -> None:
        self._source, self._target, self._log_file = source, target, log_file
        self._on_progress = on_progress
        self._copied = Copied()
        self._total = 0

    def run(self) -> Copied:
        copied = tables()
        self._total = sum(self._source.count(table) for table in copied)
        with connect(self._target.url, self._log_file) as before:
            for table in copied:
                database = self._target.writer(table)
                with bound(database):
                    self._copy(table, before, database)
        return self._copied

    def _copy(self, table: CopiedTable, before: CopiedDatabase, database: Database) -> None:
        with self._target.translated():
            empty = table.is_empty()
        if empty:
            self._insert(table, self._counted(self._source.rows(table)), database)
            return
        pairs = side_by_side(self._counted(self._source.rows(table)), before.rows(table), table.width)
        first = self._delete_others(table, pairs, database)
        if first is not None:
            pairs = side_by_side(self._source.rows(table, first), before.rows(table, first), table.width)
            self._insert(table, (row for row, there in pairs if row is not None and there is None), database)

    def _delete_others(
        self, table: CopiedTable, pairs: Iterable[tuple[Row | None, Row | None]], database: Database
    ) -> Row | None:
        """Delete the rows that the source does not have, or has with other values. Return the first missing key."""
        first: Row | None = None
        stale: list[Row] = []
        for row, there in pairs:
            if row == there:
                continue
            if first is None and row is not None:
                first = row[: table.width]
            if there is not None:
                stale.append(there[: table.width])
                if len(stale) == BATCH_ROWS:
                    self._delete(table, stale, database)
        self._delete(table, stale, database)
        return first

    def _delete(self, table: CopiedTable, keys: list[Row], database: Database) -> None:
        with self._target.translated(), database.atomic():
            run_many(table.delete(), keys)
        self._copied.deleted += len(keys)
        keys.clear()

    def _insert(self, table: CopiedTable, rows: Iterable[Row], database: Database) -> None:
        for batch in _batches(rows):
            with self._target.translated(), database.atomic():
                bulk.insert(table.model, table.fields, batch)
            self._copied.inserted += len(batch)

    def _counted(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self._copied.rows += 1
            if self._copied.rows % BATCH_ROWS == 0:
                self._on_progress(self._copied.rows, max(self._copied.rows, self._total))
            yield row


def _batches(rows: Iterable[Row]) -> Iterator[Sequence[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(batch) == BATCH_ROWS or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _finish(source: CopiedDatabase, target: CopiedDatabase) -> None:
    """Compute what is derived from the copied rows, and let the target be used."""
    if target.log is not None and target.log is not target.main:
        _set_next_ids(source, target, target.log)
    with target.translated(), bound(target.main):
        with target.main.atomic():
            ((suspended,),) = fetch(f"SELECT suspended FROM {UNFINISHED}")  # noqa: S608 - a constant
            target.tighten(suspended)
            list_blocks.rebuild()
            name_index.rebuild()
            _set_next_ids(source, target, target.main)
            run(f"DROP TABLE {UNFINISHED}")
        target.tidy()


def _set_next_ids(source: CopiedDatabase, target: CopiedDatabase, database: Database) -> None:
    """Let new rows of the tables in `database` have the ids that they would have in the source."""
    for table in tables():
        origin = source.database(table)
        if not table.has_ids or origin is None or target.database(table) is not database:
            continue
        with source.translated(), bound(origin):
            last = source.next_id(table)
        with target.translated(), bound(database):
            target.set_next_id(table, last)
