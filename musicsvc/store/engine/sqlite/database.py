"""The Peewee database class for SQLite files, on the apsw driver."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import apsw
from playhouse.apsw_ext import APSWDatabase

from musicsvc.errors import Unavailable
from musicsvc.store.engine.sqlite import files

if TYPE_CHECKING:
    from pathlib import Path

BUSY_SECONDS = 5.0
PRAGMAS: dict[str, object] = {"foreign_keys": "ON", "synchronous": "FULL", "mmap_size": 268_435_456}


class SqliteDatabase(APSWDatabase):
    """Peewee's SQLite database on apsw, with one connection per thread."""

    def __init__(self, path: Path, pragmas: dict[str, object]) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE
        # IMMEDIATE for migrations: a transaction that upgrades from reading to writing fails instead of waiting.
        super().__init__(
            str(path), pragmas={**PRAGMAS, **pragmas}, timeout=BUSY_SECONDS, lock_type="IMMEDIATE", flags=flags
        )
        self._connections: list[apsw.Connection] = []
        self._identity = files.identity(path)

    def require_in_place(self) -> None:
        """Raise Unavailable if the database file was moved or replaced while open, because writes would be lost."""
        if files.identity(self.database) != self._identity:
            raise Unavailable(here=f"{self.database} was moved, replaced or deleted. Put it back and restart.")

    def _connect(self) -> apsw.Connection:
        connection: apsw.Connection = super()._connect()
        connection.convert_binding = _convert
        # Otherwise SQLite prepares a join with parameters again at each execution, to look at their values.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._connections.append(connection)
        return connection

    def execute_sql(self, sql: str, params: object = None) -> apsw.Cursor:
        """Run a statement. Raises Unavailable if SQLite has rolled back the transaction after an earlier error."""
        if self.in_transaction() and not self.connection().in_transaction:
            raise Unavailable
        cursor: apsw.Cursor = super().execute_sql(sql, params)
        return cursor

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
