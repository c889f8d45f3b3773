"""Insert many rows into one table with few SQL statements."""

from collections.abc import Collection, Sequence
from typing import Any

from peewee import Model

from musicsvc.store.engine.binding import current
from musicsvc.store.engine.dialect import is_sqlite
from musicsvc.store.engine.sql import fetch, run_many

LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = ?"
NEXT_IDS = "SELECT nextval(pg_get_serial_sequence(?, 'id')) FROM generate_series(1, ?)"


def ids(table: type[Model], count: int) -> list[int]:
    """Return `count` unused ids in ascending order, for rows to insert in the same transaction."""
    name: str = table._meta.table_name  # noqa: SLF001 - Peewee's documented access to a table's names
    if not is_sqlite():
        return sorted(row[0] for row in fetch(NEXT_IDS, name, count))
    rows = fetch(LAST_ID, name)
    last: int = rows[0][0] if rows else 0
    return list(range(last + 1, last + 1 + count))


def insert(table: type[Model], fields: Sequence[str], rows: Collection[Sequence[Any]]) -> None:
    """Insert `rows`, each with one value per name in `fields`, without validation. Other fields get their defaults."""
    if not rows:
        return
    meta = table._meta  # noqa: SLF001 - Peewee's documented access to a table's names
    defaults = {field.name: value for field, value in meta.defaults.items() if field.name not in fields}
    columns = [f'"{meta.fields[name].column_name}"' for name in (*fields, *defaults)]
    into = f'"{meta.table_name}" ({", ".join(columns)})'
    rest = tuple(defaults.values())
    if is_sqlite():
        placeholders = ", ".join("?" * len(columns))
        run_many(f"INSERT INTO {into} VALUES ({placeholders})", [(*row, *rest) for row in rows])  # noqa: S608 - names of our tables
        return
    connection: Any = current().connection()
    with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
        for row in rows:
            copy.write_row((*row, *rest))
