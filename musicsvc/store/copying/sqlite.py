"""A SQLite database that is copied or compared, with its activity log in a second file."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw

from musicsvc.errors import Failure, Unavailable
from musicsvc.store.copying.databases import CopiedDatabase
from musicsvc.store.copying.tables import CopiedTable
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.sqlite import file_locks, files
from musicsvc.store.engine.sqlite.files import SqliteDatabase

READING: dict[str, object] = {"query_only": "ON", "mmap_size": 0, "cache_size": -8000}
WRITING: dict[str, object] = {"journal_mode": "WAL", "foreign_keys": "OFF", "mmap_size": 0, "cache_size": -64000}
ORPHANS = "PRAGMA foreign_key_check"
SEQUENCE = "SELECT seq FROM sqlite_sequence WHERE name = ?"
LAST_ID = f"SELECT max(coalesce(({SEQUENCE}), 0), coalesce(max(id), 0)) FROM {{name}}"  # noqa: S608 - a constant


class CopiedSqliteDatabase(CopiedDatabase):
    errors = files.ERRORS

    def __init__(self, url: str, path: Path, log_file: Path, *, writes: bool) -> None:
        """Connect to the files. Raises Failure if one is unusable. `writes`: it is the target of a copy."""
        super().__init__(url)
        self.path = path
        files.examine(path)
        self.main = SqliteDatabase(path, WRITING if writes else READING)
        self.log = None
        self._opened = [self.main]
        if log_file.exists():
            files.examine(log_file, files.LOG_ID)
            self._opened.append(SqliteDatabase(log_file, WRITING if writes else READING))
            self.open_log(self._opened[-1])
        if writes:
            self._enable_triggers(enabled=False)

    def _enable_triggers(self, *, enabled: bool) -> None:
        self.main.connection().config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, int(enabled))

    def begin(self) -> None:
        for database in filter(None, (self.main, self.log)):
            with self.translated():
                database.execute_sql("BEGIN")
                database.execute_sql("SELECT 1 FROM sqlite_schema").fetchall()  # which determines the snapshot

    @contextmanager
    def alone(self) -> Iterator[bool]:
        with ExitStack() as stack:
            try:
                stack.enter_context(file_locks.exclusive(self.path))
                locked = True
            except Failure:
                stack.callback(file_locks.use(self.path).release)
                locked = False
            yield locked

    def tighten(self, statements: str) -> None:  # noqa: ARG002 - the interface
        """Enable the triggers again. Raises `Failure` if a row refers to a missing one."""
        self._enable_triggers(enabled=True)
        if found := fetch(ORPHANS):
            table, row, parent, _ = found[0]
            raise Failure(f"Row {row} of {table} refers to a missing row of {parent}: delete it from the source.")

    def next_id(self, table: CopiedTable) -> int:
        return int(fetch(LAST_ID.format(name=table.name), table.name)[0][0])

    def set_next_id(self, table: CopiedTable, last: int) -> None:
        bulk.start_ids(table.model, last)

    def failure(self, error: Exception) -> Failure:
        found = files.translate(error, self.path)
        if isinstance(found, Unavailable):
            return Failure(found.here)
        return found if isinstance(found, Failure) else Failure(f"{self.name} cannot be used: {error}.")

    def close(self) -> None:
        for database in self._opened:
            database.close_all()
