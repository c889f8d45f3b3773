"""SQL that differs between SQLite and PostgreSQL. The functions use the database of the current unit of work.

Statements are written with `?` for each parameter; `native` replaces it by the placeholder of the database.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from musicsvc.store.engine.binding import current

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

T = TypeVar("T")
DENSE = 4  # ascending ids are read as one range if they are at least 1/DENSE of its numbers
BATCH = 500  # values in one statement; both databases take more than ten thousand


def is_sqlite() -> bool:
    """Return True if the current unit of work runs on SQLite."""
    return not current().for_update


def native(statement: str) -> str:
    """Return the statement with each `?` replaced by the placeholder of the current database."""
    return statement.replace("?", current().param)


def lock_rows(query: Any) -> Any:
    """Return the query, extended to lock its rows until the transaction ends; unchanged on SQLite: it has one writer.

    The lock is NO KEY UPDATE: rows that refer to a locked row can still be inserted, which avoids deadlocks.
    """
    return query if is_sqlite() else query.for_update("FOR NO KEY UPDATE")


def lock(number: int) -> None:
    """Acquire the advisory lock `number` until the transaction ends. Does nothing on SQLite, which has one writer."""
    if not is_sqlite():
        current().execute_sql("SELECT pg_advisory_xact_lock(%s)", (number,))


def by_code_point(field: Any) -> Any:
    """Return an expression that sorts a text column by code point on both databases."""
    return field if is_sqlite() else field.collate('"C"')


def concat_blob(left: str, right: str) -> str:
    """Return an SQL expression that concatenates two blobs."""
    return f"CAST({left} || {right} AS BLOB)" if is_sqlite() else f"{left} || {right}"


def in_list(values: Collection[int] | Collection[str]) -> tuple[str, Any]:
    """Return SQL that tests if the column written before it is one of `values`, and the only parameter of this SQL."""
    if is_sqlite():
        return "IN (SELECT value FROM json_each(?))", orjson.dumps(list(values)).decode()
    return "= ANY(?)", list(values)


def in_range_or_list(ids: Sequence[int]) -> tuple[str, list[object]]:
    """Return SQL like that of `in_list` for ascending ids, and its parameters. It may also match ids between them."""
    if ids[-1] - ids[0] < DENSE * len(ids):
        return "BETWEEN ? AND ?", [ids[0], ids[-1]]
    condition, value = in_list(ids)
    return condition, [value]


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in batches that are small enough for one SQL statement."""
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


def insert_many(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Run an INSERT statement, with `{rows}` in place of its VALUES clause, for all rows.

    `types` are the PostgreSQL types of the columns. If the statement has ON CONFLICT, no two rows may update the same
    row of the table.
    """
    if not rows:
        return
    if is_sqlite():
        current().cursor().executemany(statement.format(rows=f"VALUES {_placeholders(types)}"), rows)
    else:
        _insert_arrays(statement, types, rows)


def insert_returning(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Insert rows like `insert_many`, and return the rows of the RETURNING clause in no particular order."""
    if not rows:
        return []
    if not is_sqlite():
        return list(_insert_arrays(statement, types, rows).fetchall())
    found: list[tuple[Any, ...]] = []
    for batch in batches(rows):
        values = f"VALUES {', '.join([_placeholders(types)] * len(batch))}"
        found += current().execute_sql(statement.format(rows=values), tuple(chain.from_iterable(batch))).fetchall()
    return found


def _placeholders(columns: Sequence[object]) -> str:
    return f"({', '.join('?' * len(columns))})"


def _insert_arrays(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """Run the statement of `insert_many` on PostgreSQL: the values of each column are one array parameter."""
    arrays = ", ".join(f"%s::{kind}[]" for kind in types)
    columns = [list(column) for column in zip(*rows, strict=True)]
    source = f"SELECT * FROM unnest({arrays})"  # noqa: S608 - `types` are constants of the callers
    return current().execute_sql(statement.format(rows=source), columns)
