"""Many rows at once: their ids ahead of them, then one statement: executemany on SQLite, COPY on PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from musicsvc.store.database import current, is_sqlite

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from musicsvc.store.models import Table

T = TypeVar("T")
LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = ?"
NEXT_IDS = "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)"
PIECE = 500  # values in one query; the stores take some ten thousand


def pieces(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in runs that one query can take."""
    return (values[start : start + PIECE] for start in range(0, len(values), PIECE))


def ids(table: type[Table], count: int) -> list[int]:
    """So many ids that no row of the table has or will get, ascending; to be used in the same unit."""
    name: str = table._meta.table_name  # noqa: SLF001 - Peewee's way to it
    if not is_sqlite():
        return sorted(row[0] for row in current().execute_sql(NEXT_IDS, (name, count)).fetchall())
    row = current().execute_sql(LAST_ID, (name,)).fetchone()
    last: int = row[0] if row else 0
    return list(range(last + 1, last + 1 + count))


def insert(table: type[Table], fields: Sequence[str], rows: Collection[Sequence[Any]]) -> None:
    """Insert rows of checked values; `fields` names what they are, the rest takes the table's defaults."""
    if not rows:
        return
    meta = table._meta  # noqa: SLF001 - Peewee's way to a table's names
    defaults = {field.name: value for field, value in meta.defaults.items() if field.name not in fields}
    columns = [f'"{meta.fields[name].column_name}"' for name in (*fields, *defaults)]
    into = f'"{meta.table_name}" ({", ".join(columns)})'
    rest = tuple(defaults.values())
    connection: Any = current().connection()
    if is_sqlite():
        signs = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {into} VALUES ({signs})", [(*row, *rest) for row in rows])  # noqa: S608
        return
    with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
        for row in rows:
            copy.write_row((*row, *rest))
