"""The tables that are copied and compared, and their rows in the order of the primary key.

A row is a tuple of integers, floats, texts, bytes and None, equal on SQLite and PostgreSQL. Its key comes first.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from peewee import SQL, BigAutoField, Database, Model, fn

from musicsvc.store import models
from musicsvc.store.engine.sql import bound, is_sqlite, native

Row = tuple[Any, ...]
# Computed from other tables, in another way on each database, and computed again after a copy.
DERIVED = (models.ListBlock, models.TrackRank, models.ListenProgress)
TYPES = {
    "BIGAUTO": "int8",
    "BIGINT": "int8",
    "INT": "int4",
    "BOOL": "int4",
    "DOUBLE": "float8",
    "TEXT": "text",
    "BLOB": "bytea",
}


class CopiedTable:
    """A table of the database or of the activity log: its name, its columns, and how many of them are the key."""

    def __init__(self, model: type[Model]) -> None:
        meta = model._meta  # noqa: SLF001 - Peewee's documented access to a table's columns
        keys = list(meta.get_primary_keys())
        fields = keys + [field for field in meta.sorted_fields if field.name not in {key.name for key in keys}]
        self.model = model
        self.name: str = meta.table_name
        self.width = len(keys)
        self.fields = [field.name for field in fields]
        self.columns: list[str] = [field.column_name for field in fields]
        self.has_ids = isinstance(keys[0], BigAutoField)
        self._kinds: list[str] = [field.field_type for field in fields]

    @cached_property
    def types(self) -> list[str]:
        """PostgreSQL's types of the columns of a row."""
        return [TYPES[kind] for kind in self._kinds]

    def rows(self, database: Database, start: Row = ()) -> Iterator[Row]:
        """Yield the rows of this table in `database` in the order of keys, or those from the key `start` on."""
        with bound(database):
            statement = native(self._select(start))
            sqlite = is_sqlite()
        if sqlite:
            yield from database.execute_sql(statement, start)
            return
        connection: Any = database.connection()
        into = f"COPY ({statement}) TO STDOUT (FORMAT BINARY)"
        with connection.cursor() as cursor, cursor.copy(into, start or None) as copy:
            copy.set_types(self.types)
            yield from copy.rows()

    def _select(self, start: Row) -> str:
        columns = ", ".join(
            f'CAST("{name}" AS int)' if kind == "BOOL" else f'"{name}"'
            for name, kind in zip(self.columns, self._kinds, strict=True)
        )
        key = self._key("" if is_sqlite() else ' COLLATE "C"')
        where = f"WHERE ({key}) >= ({_placeholders(start)})" if start else ""
        return f'SELECT {columns} FROM "{self.name}" {where} ORDER BY {key}'  # noqa: S608 - names of our tables

    def _key(self, collation: str = "") -> str:
        parts = zip(self.columns[: self.width], self._kinds, strict=False)
        return ", ".join(f'"{name}"{collation if kind == "TEXT" else ""}' for name, kind in parts)

    def delete(self) -> str:
        """Return a statement that deletes the row with a key, given as parameters."""
        return f'DELETE FROM "{self.name}" WHERE ({self._key()}) = ({_placeholders(self.columns[: self.width])})'  # noqa: S608 - the same

    def count(self) -> int:
        """Return the number of rows in the current database."""
        return int(self.model.select(fn.COUNT(SQL("*"))).scalar())

    def is_empty(self) -> bool:
        return not self.model.select().exists()


def _placeholders(values: Any) -> str:
    return ", ".join("?" * len(values))


def tables() -> list[CopiedTable]:
    """Return all tables with data of users, each after those that it refers to; those of the activity log come last."""
    return [CopiedTable(each) for each in [*models.tables(), *models.LOG_TABLES] if each not in DERIVED]


def side_by_side(source: Iterator[Row], target: Iterator[Row], width: int) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield the rows of both with the same key together, in the order of keys, with None in place of a missing row.

    `width`: the number of columns of the key.
    """
    one, other = next(source, None), next(target, None)
    while one is not None or other is not None:
        if one is None or (other is not None and other[:width] < one[:width]):
            yield None, other
            other = next(target, None)
        elif other is None or one[:width] < other[:width]:
            yield one, None
            one = next(source, None)
        else:
            yield one, other
            one, other = next(source, None), next(target, None)
