"""SQL that differs between SQLite and PostgreSQL, for the database of the unit that runs.

Statements are written with `?` for each parameter; `native` puts in the placeholder of the database.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from musicsvc.store.engine.binding import current

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

T = TypeVar("T")
DENSE = 4  # ascending ids are read as one range if at least one in DENSE of its numbers is among them
BATCH = 500  # values in one statement; both databases take more than ten thousand


def is_sqlite() -> bool:
    """Whether the unit runs on SQLite."""
    return not current().for_update


def native(statement: str) -> str:
    """Return the statement with the database's own placeholder for each `?`."""
    return statement.replace("?", current().param)


def lock_rows(query: Any) -> Any:
    """Return the query with a lock on its rows until the unit ends. On SQLite a writing unit runs alone anyway.

    The lock is NO KEY UPDATE: rows that refer to a locked one can still be inserted, which avoids deadlocks.
    """
    return query if is_sqlite() else query.for_update("FOR NO KEY UPDATE")


def lock(number: int) -> None:
    """Hold the advisory lock of this number until the unit ends. On SQLite a writing unit runs alone anyway."""
    if not is_sqlite():
        current().execute_sql("SELECT pg_advisory_xact_lock(%s)", (number,))


def by_code_point(field: Any) -> Any:
    """Return the text column in the order of its code points, the same on both databases."""
    return field if is_sqlite() else field.collate('"C"')


def concat_blob(left: str, right: str) -> str:
    """Return an expression that joins two blobs."""
    return f"CAST({left} || {right} AS BLOB)" if is_sqlite() else f"{left} || {right}"


def in_list(values: Collection[int] | Collection[str]) -> tuple[str, Any]:
    """Return a condition for a column, with one parameter however many values there are, and that parameter."""
    if is_sqlite():
        return "IN (SELECT value FROM json_each(?))", orjson.dumps(list(values)).decode()
    return "= ANY(?)", list(values)


def in_range_or_list(ids: Sequence[int]) -> tuple[str, list[object]]:
    """Return a condition and its parameters for ascending ids: their range if dense, which may hold other ids too."""
    if ids[-1] - ids[0] < DENSE * len(ids):
        return "BETWEEN ? AND ?", [ids[0], ids[-1]]
    condition, value = in_list(ids)
    return condition, [value]


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in batches that fit one statement."""
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


def insert_many(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Run an INSERT, which names its source `{rows}`, for all rows at once; with ON CONFLICT it updates.

    `types` are PostgreSQL's types of the columns. No two rows may update the same row of the table.
    """
    if not rows:
        return
    if is_sqlite():
        current().cursor().executemany(statement.format(rows=f"VALUES {_placeholders(types)}"), rows)
    else:
        _insert_arrays(statement, types, rows)


def insert_returning(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Run `insert_many` for an INSERT … RETURNING and return its rows, in no particular order."""
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
    """Run the statement on PostgreSQL with one array parameter for each column."""
    arrays = ", ".join(f"%s::{kind}[]" for kind in types)
    columns = [list(column) for column in zip(*rows, strict=True)]
    source = f"SELECT * FROM unnest({arrays})"  # noqa: S608 - `types` are constants of the callers
    return current().execute_sql(statement.format(rows=source), columns)
