"""Many rows at once: their ids ahead of them, then one statement for all of them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from musicsvc.store.engine.binding import current, is_sqlite

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from musicsvc.store.models import Table

T = TypeVar("T")
LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = ?"
NEXT_IDS = "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)"
DENSE = 4  # ascending ids of which so large a part is wanted are read as one range
PIECE = 500  # values in one query; the stores take some ten thousand


def pieces(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in runs that one query can take."""
    return (values[start : start + PIECE] for start in range(0, len(values), PIECE))


def among(values: Collection[int] | Collection[str]) -> tuple[str, Any]:
    """A condition for a column that any number of values meet, and its one parameter."""
    if is_sqlite():
        return "IN (SELECT value FROM json_each(?))", orjson.dumps(list(values)).decode()
    return "= ANY(%s)", list(values)


def among_ascending(ids: Sequence[int]) -> tuple[str, list[object]]:
    """Return a condition that these ascending ids meet, perhaps with a few between them, and its parameters."""
    if ids[-1] - ids[0] < DENSE * len(ids):
        return f"BETWEEN {current().param} AND {current().param}", [ids[0], ids[-1]]
    condition, value = among(ids)
    return condition, [value]


def run(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Run an INSERT for each of the rows, which go where the statement says `{rows}`.

    `types` are those of the columns, in PostgreSQL's words. No row of the table may be changed by two of the rows.
    """
    if not rows:
        return
    if is_sqlite():
        signs = ", ".join("?" * len(types))
        current().cursor().executemany(statement.format(rows=f"VALUES ({signs})"), rows)
    else:
        _run_arrays(statement, types, rows)


def returning(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The same for an INSERT … RETURNING: what it gives, in no order."""
    if not rows:
        return []
    if not is_sqlite():
        return list(_run_arrays(statement, types, rows).fetchall())
    signs = f"({', '.join('?' * len(types))})"
    answers: list[tuple[Any, ...]] = []
    for some in pieces(rows):
        values = f"VALUES {', '.join([signs] * len(some))}"
        answers += current().execute_sql(statement.format(rows=values), tuple(chain.from_iterable(some))).fetchall()
    return answers


def _run_arrays(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """Run the statement on PostgreSQL with an array for each column."""
    arrays = ", ".join(f"%s::{kind}[]" for kind in types)
    columns = [list(column) for column in zip(*rows, strict=True)]
    return current().execute_sql(statement.format(rows=f"SELECT * FROM unnest({arrays})"), columns)  # noqa: S608


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
