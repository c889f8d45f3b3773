"""SQL that differs between SQLite and PostgreSQL. The functions use the database of the current thread."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

import orjson
from peewee import IntegrityError

from musicsvc.store.engine.binding import current
from musicsvc.store.engine.sqlite import noted_rows

T = TypeVar("T")
R = TypeVar("R", bound="Sequence[Any]")
DENSE = 2  # ascending ids are read as one range if they are at least 1/DENSE of its numbers
BATCH = 500  # values in one statement; both databases take more than ten thousand
SIZES = (512, 128, 32, 8, 1)  # rows of one INSERT; few sizes, so that the statements are prepared once


def is_sqlite() -> bool:
    return not current().for_update


def native(statement: str) -> str:
    """Return the statement with each `?` replaced by the parameter placeholder of the database: `?` or `%s`."""
    return statement.replace("?", current().param)


def lock_rows(query: Any) -> Any:
    """Return `query` with FOR NO KEY UPDATE, which locks the selected rows. On SQLite, return `query` unchanged."""
    # NO KEY: rows that refer to a locked row can still be inserted, which avoids deadlocks.
    return query if is_sqlite() else query.for_update("FOR NO KEY UPDATE")


def lock(number: int, *, shared: bool = False) -> None:
    """Acquire PostgreSQL's advisory lock `number` until the transaction ends. Does nothing on SQLite.

    Several transactions may hold a `shared` lock at a time. A lock that is not shared excludes all others.
    """
    if not is_sqlite():
        current().execute_sql(f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}(%s)", (number,))


def by_code_point(field: Any) -> Any:
    """Return an ORDER BY expression that sorts a text column by Unicode code point on both databases."""
    return field if is_sqlite() else field.collate('"C"')


def concat_blob(left: str, right: str) -> str:
    """Return an SQL expression that concatenates the blob expressions `left` and `right`."""
    return f"CAST({left} || {right} AS BLOB)" if is_sqlite() else f"{left} || {right}"


def gather(column: str) -> str:
    """Return an SQL aggregate that collects the values of an integer column. Decode its result with `gathered`."""
    return f"json_group_array({column})" if is_sqlite() else f"array_agg({column})"


def gathered(values: Any) -> list[int]:
    """Return the list of integers in the result of the SQL aggregate that `gather` returns."""
    found: list[int] = orjson.loads(values) if isinstance(values, str) else values
    return found


def in_list(values: Collection[int] | Collection[str]) -> tuple[str, Any]:
    """Return SQL to append to a column name, such as `= ANY(?)` for "is one of the values", and its parameter."""
    if is_sqlite():
        return "IN (SELECT value FROM json_each(?))", orjson.dumps(list(values)).decode()
    return "= ANY(?)", list(values)


def table_of(values: Sequence[int], name: str = "given") -> tuple[str, Any]:
    """Return SQL for a FROM clause, a table `name` with the integers in its column `value`, and its parameter.

    `values` must not be empty. On SQLite, joining it takes two thirds of the time of the condition of `in_list`.
    """
    if is_sqlite():
        database: Any = current()
        return f"carray(?) AS {name}", database.integers(values)
    return f"unnest(?::bigint[]) AS {name}(value)", list(values)


def is_dense(ids: Sequence[int]) -> bool:
    """Return True if ascending `ids` have few gaps, so that they are read as one range."""
    return ids[-1] - ids[0] < DENSE * len(ids)


def in_range_or_list(ids: Sequence[int]) -> tuple[str, list[object]]:
    """Return an SQL condition on an id column, to append to the column name, and its parameters.

    `ids` must be in ascending order. If they have few gaps, the condition is a BETWEEN, which also matches the gaps.
    """
    if is_dense(ids):
        return "BETWEEN ? AND ?", [ids[0], ids[-1]]
    condition, value = in_list(ids)
    return condition, [value]


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield slices of at most 500 values, which are small enough for one SQL statement."""
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


def insert_many(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert all `rows` with an INSERT statement that contains `{rows}` in place of its VALUES clause.

    `types` are the PostgreSQL types of the columns. With ON CONFLICT, two rows must not update the same stored row.
    """
    if not rows:
        return
    if not is_sqlite():
        _insert_arrays(statement, types, rows)
        return
    for some in _pieces(rows):
        _insert_values(statement, some)


def insert_returning(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Run a statement that contains `{rows}` in place of a VALUES clause. Return the resulting rows in any order."""
    if not rows:
        return []
    if not is_sqlite():
        return list(_insert_arrays(statement, types, rows).fetchall())
    return [row for some in _pieces(rows) for row in _insert_values(statement, some).fetchall()]


def sum_noting(old: str, new: str, least: int, key: Sequence[str]) -> str:
    """Return an SQL expression for the sum of `old` and `new`, to assign in a statement for `insert_noting`.

    `least`: the smallest sum to note. `key`: the columns to return with it.
    """
    total = f"{old} + {new}"
    if not is_sqlite():
        return total
    return f"CASE WHEN {total} < {least} THEN {total} ELSE {noted_rows.FUNCTION}({', '.join(key)}, {total}) END"


def insert_noting(
    statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]], columns: Sequence[str]
) -> Sequence[tuple[Any, ...]]:
    """Insert `rows`, and return (key, sum) of each stored row to which a `sum_noting` of at least `least` was assigned.

    `columns`: the names of the key and of the sum. On PostgreSQL, the result may also have other rows.
    """
    if not is_sqlite():
        return insert_returning(f"{statement} RETURNING {', '.join(columns)}", types, rows)
    with noted_rows.noting() as noted:
        insert_many(statement, types, rows)
    return noted


def insert_new(table: str, columns: Mapping[str, str], rows: Sequence[R]) -> Sequence[R | tuple[Any, ...]]:
    """Insert those rows that are not stored yet. Return the inserted rows in any order.

    `columns` are the names of all columns of a row, with their PostgreSQL types.
    """
    names = ", ".join(columns)
    insert = f"INSERT INTO {table} ({names}) {{rows}}"
    skip_repeats = f"{insert} ON CONFLICT DO NOTHING RETURNING {names}"
    if not is_sqlite():
        return insert_returning(skip_repeats, [*columns.values()], rows)
    new: list[R | tuple[Any, ...]] = []
    for some in _pieces(rows):
        # RETURNING takes nearly as long as the insert itself, so it is used only where there are repeats.
        try:
            _insert_values(insert, some)
            new += some
        except IntegrityError:  # nothing was inserted
            new += _insert_values(skip_repeats, some).fetchall()
    return new


def _pieces(rows: Sequence[R]) -> Iterator[Sequence[R]]:
    """Yield slices for one INSERT each: on SQLite, up to 512 rows at once take half the time of single rows."""
    start = 0
    for size in SIZES:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size


def _insert_values(statement: str, rows: Sequence[Sequence[Any]]) -> Any:
    """Run a statement on SQLite, with `{rows}` replaced by a VALUES clause. Return the cursor."""
    return current().execute_sql(_with_values(statement, len(rows[0]), len(rows)), tuple(chain.from_iterable(rows)))


@lru_cache(256)  # texts of up to 15 kB
def _with_values(statement: str, columns: int, rows: int) -> str:
    row = f"({','.join('?' * columns)})"  # without spaces: the driver hashes the whole text at each execution
    return statement.format(rows=f"VALUES {','.join([row] * rows)}")


def _insert_arrays(statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """Run a statement on PostgreSQL, with `{rows}` replaced by one array parameter per column. Return the cursor."""
    arrays = ", ".join(f"%s::{kind}[]" for kind in types)
    columns = [list(column) for column in zip(*rows, strict=True)]
    source = f"SELECT * FROM unnest({arrays})"  # noqa: S608 - `types` are constants of the callers
    return current().execute_sql(statement.format(rows=source), columns)
