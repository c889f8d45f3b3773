"""The Peewee database class for SQLite files, on the apsw driver."""

from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
from peewee import __exception_wrapper__ as peewee_errors  # type: ignore[attr-defined]  # missing in the stubs
from playhouse.apsw_ext import APSWDatabase

from musicsvc.errors import Unavailable
from musicsvc.store.engine.sqlite import files, noted_rows
from musicsvc.store.engine.tables import Noting, Tables, note

BUSY_SECONDS = 5.0
# Each table, with a table whose deletes change it. Shadow tables are parts of virtual tables.
TABLES = """
    SELECT t.name, CASE WHEN f.on_delete NOT IN ('NO ACTION', 'RESTRICT') THEN f."table" END
    FROM pragma_table_list t LEFT JOIN pragma_foreign_key_list(t.name) f
    WHERE t.schema = 'main' AND t.type <> 'shadow' AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~'
"""
MAPPED = 1 << 31  # bytes; SQLite maps no more. Pages that are not mapped are copied, which costs figures a tenth.
PRAGMAS: dict[str, object] = {"foreign_keys": "ON", "synchronous": "FULL", "mmap_size": MAPPED}


class NotingCursor(Noting, apsw.Cursor):
    """A cursor that records the text of each statement, to find the tables that a transaction reads and changes."""


class SqliteDatabase(APSWDatabase):
    """Peewee's SQLite database on apsw, with one connection per thread."""

    def __init__(self, path: Path, pragmas: dict[str, object], *, statements: int = 100) -> None:
        """Prepare for connections to a file. `statements`: how many prepared statements each connection keeps."""
        flags = apsw.SQLITE_OPEN_READWRITE
        # IMMEDIATE for migrations: a transaction that upgrades from reading to writing fails instead of waiting.
        super().__init__(
            str(path),
            pragmas={**PRAGMAS, **pragmas},
            timeout=BUSY_SECONDS,
            lock_type="IMMEDIATE",
            flags=flags,
            statementcachesize=statements,
        )
        self._connections: list[apsw.Connection] = []
        self._identity = files.identity(path)
        self._tables: Tables | None = None

    @property
    def tables(self) -> Tables:
        """The tables of the database, read once. Before the table `table_version` exists, they are read every time."""
        if self._tables is None or not self._tables.versioned:
            self._tables = Tables(self.connection().execute(TABLES))
        return self._tables

    def require_in_place(self) -> None:
        """Raise Unavailable if the database file was moved or replaced while open, because writes would be lost."""
        if files.identity(self.database) != self._identity:
            raise Unavailable(here=f"{self.database} was moved, replaced or deleted. Put it back and restart.")

    def _connect(self) -> apsw.Connection:
        connection: apsw.Connection = super()._connect()
        connection.convert_binding = _convert
        # Otherwise SQLite prepares a join with parameters again at each execution, to look at their values.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.cursor_factory = NotingCursor
        connection.create_scalar_function(noted_rows.FUNCTION, noted_rows.note)
        self._connections.append(connection)
        return connection

    def execute_sql(self, sql: str, params: Sequence[Any] | None = None) -> apsw.Cursor:
        """Run a statement. Raises Unavailable if SQLite has rolled back the transaction after an earlier error.

        Peewee's method and NotingCursor are not used, because they take longer than a short statement.
        """
        connection: apsw.Connection = self.connection()
        if self.in_transaction() and not connection.in_transaction:
            raise Unavailable
        if self.query_hooks:
            cursor: apsw.Cursor = super().execute_sql(sql, params)
            return cursor
        note(sql)
        try:
            return apsw.Cursor(connection).execute(sql, params or ())
        except apsw.Error:
            with peewee_errors:
                raise

    def integers(self, values: Iterable[int]) -> Any:
        """Return a parameter for `carray(?)`. `values` must not be empty."""
        return apsw.carray(array("q", values))

    def close_all(self) -> None:
        """Close the connections of all threads. No thread may be using its connection."""
        while self._connections:
            close(self._connections.pop())


def close(connection: apsw.Connection) -> None:
    """Close a connection and ignore errors. If the WAL cannot be checkpointed now, the next start checkpoints it."""
    with suppress(apsw.Error):
        connection.close()


def _convert(_cursor: apsw.Cursor, _index: int, value: object) -> str:
    """Return a datetime parameter as text, because apsw accepts no datetime. Raises TypeError for any other type."""
    if isinstance(value, datetime):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be stored in the database")
