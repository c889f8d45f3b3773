"""Insert many rows into one table with few SQL statements, and tell which of them are new or reach a sum.

On SQLite, a statement tells which few of its many rows meet a condition by the function `noted(…)`, which notes its
arguments and returns the last one. RETURNING would return all of them.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

from peewee import IntegrityError, Model, Table

from musicsvc.store.engine.sql import assigned, current, fetch, is_sqlite

R = TypeVar("R", bound="Sequence[Any]")
MOST_ROWS = 512  # of one INSERT
MOST_SIGNS = 14_500  # of its rows as text: the driver prepares texts from 16 kB again each time
HALVINGS = 5  # of the number of rows; few sizes, so that the statements are prepared once
NOTED = "noted"  # the SQL function
POSTGRES_TYPES = {"TEXT": "text", "BLOB": "bytea"}
LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = ?"
NEXT_IDS = "SELECT nextval(pg_get_serial_sequence(?, 'id')) FROM generate_series(1, ?)"
_noted: ContextVar[list[tuple[Any, ...]] | None] = ContextVar("musicsvc_noted_rows", default=None)


def ids(table: type[Model], count: int) -> list[int]:
    """Return `count` unused ids in ascending order, for rows to insert in the same transaction."""
    name: str = table._meta.table_name  # noqa: SLF001 - Peewee's documented access to a table's names
    if not is_sqlite():
        return sorted(row[0] for row in fetch(NEXT_IDS, name, count))
    rows = fetch(LAST_ID, name)
    last: int = rows[0][0] if rows else 0
    return list(range(last + 1, last + 1 + count))


def start_ids(table: type[Model], last: int) -> None:
    """Let new rows of the table have ids after `last`. For SQLite only."""
    name = table._meta.table_name  # noqa: SLF001 - Peewee's documented access to a table's names
    sequence: Any = Table("sqlite_sequence", ("name", "seq"))
    sequence.delete().where(sequence.name == name).execute(current())
    sequence.insert(name=name, seq=last).execute(current())


def insert(table: type[Model], fields: Sequence[str], rows: Collection[Sequence[Any]], update: str = "") -> None:
    """Insert `rows`, each with one value per name in `fields`, without validation. Other fields get their defaults.

    `update`: the SQL after ON CONFLICT, for rows whose keys may be stored; all fields must be integers, texts or bytes.
    """
    if not rows:
        return
    meta = table._meta  # noqa: SLF001 - Peewee's documented access to a table's names
    defaults = {field.name: value for field, value in meta.defaults.items() if field.name not in fields}
    columns = [f'"{meta.fields[name].column_name}"' for name in (*fields, *defaults)]
    into = f'"{meta.table_name}" ({", ".join(columns)})'
    rest = tuple(defaults.values())
    if is_sqlite() or update:
        types = _types(meta, (*fields, *defaults))
        whole = [(*row, *rest) for row in rows] if rest else [*rows]
        insert_many(f"INSERT INTO {into} {{rows}} {update}", types, whole)
        return
    connection: Any = current().connection()
    with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
        for row in rows:
            copy.write_row((*row, *rest))


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
    return f"CASE WHEN {total} < {least} THEN {total} ELSE {NOTED}({', '.join(key)}, {total}) END"


def insert_noting(
    statement: str, types: Sequence[str], rows: Sequence[Sequence[Any]], columns: Sequence[str]
) -> Sequence[tuple[Any, ...]]:
    """Insert `rows`, and return (key, sum) of each stored row to which a `sum_noting` of at least `least` was assigned.

    `columns`: the names of the key and of the sum. On PostgreSQL, the result may also have other rows.
    """
    if not is_sqlite():
        return insert_returning(f"{statement} RETURNING {', '.join(columns)}", types, rows)
    with noted_rows() as noted:
        insert_many(statement, types, rows)
    return noted


def insert_new(table: type[Model], fields: Sequence[str], rows: Sequence[R]) -> Sequence[R | tuple[Any, ...]]:
    """Insert those rows, each with one value per name in `fields`, that are not stored yet. Return these in any order.

    All fields must be integers, texts or bytes.
    """
    meta = table._meta  # noqa: SLF001 - Peewee's documented access to a table's names
    names = ", ".join(meta.fields[name].column_name for name in fields)
    insert = f"INSERT INTO {meta.table_name} ({names}) {{rows}}"
    skip_repeats = f"{insert} ON CONFLICT DO NOTHING RETURNING {names}"
    if not is_sqlite():
        return insert_returning(skip_repeats, _types(meta, fields), rows)
    new: list[R | tuple[Any, ...]] = []
    for some in _pieces(rows):
        # RETURNING takes nearly as long as the insert itself, so it is used only where there are repeats.
        try:
            _insert_values(insert, some)
            new += some
        except IntegrityError:  # nothing was inserted
            new += _insert_values(skip_repeats, some).fetchall()
    return new


def _types(meta: Any, fields: Iterable[str]) -> list[str]:
    """Return the PostgreSQL types of the columns of fields."""
    return [POSTGRES_TYPES.get(meta.fields[name].field_type, "bigint") for name in fields]


def _pieces(rows: Sequence[R]) -> Iterator[Sequence[R]]:
    """Yield slices for one INSERT each: on SQLite, up to 512 rows at once take half the time of single rows.

    Beside busy threads, each statement waits for Python's lock, which costs more than to prepare one of a few rows.
    """
    if not rows:
        return
    most = min(MOST_ROWS, MOST_SIGNS // (2 * len(rows[0]) + 2))
    start = 0
    for size in (most >> halving for halving in range(HALVINGS)):
        while len(rows) - start >= size > 0:
            yield rows[start : start + size]
            start += size
    if start < len(rows):
        yield rows[start:]


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


def noted_rows() -> AbstractContextManager[list[tuple[Any, ...]]]:
    """Yield a list, and add to it the arguments of each call of `noted(…)` in the `with` block."""
    return assigned(_noted, [])


def note_row(*row: Any) -> Any:
    """Note a row. Raises RuntimeError outside `noted_rows`. SQLite calls this function, as `noted(…)`."""
    rows = _noted.get()
    if rows is None:
        raise RuntimeError(f"{NOTED}() is for statements in a block of noted_rows()")
    rows.append(row)
    return row[-1]


def link(table: type[Model], item: int, members: Iterable[int]) -> None:
    """Link an album or track to artists, in this order, to genres or to tags; `table`: such as `TrackArtist`."""
    names = table._meta.sorted_field_names  # noqa: SLF001 - Peewee's documented access: the item, the member, its place
    if rows := [dict(zip(names, (item, each, at), strict=False)) for at, each in enumerate(members)]:
        table.insert_many(rows).execute()


def relink(table: type[Model], item: int, members: Iterable[int]) -> None:
    """Do the same as `link`, in place of the former links."""
    table.delete().where(table._meta.sorted_fields[0] == item).execute()  # noqa: SLF001 - the same
    link(table, item, members)
