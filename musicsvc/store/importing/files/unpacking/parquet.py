"""Read a Parquet file with DuckDB. Rows are numbered from 1, in place of lines."""

import re
from collections.abc import Iterator
from typing import Any

import duckdb

from musicsvc.errors import Failure
from musicsvc.store.importing.files.records import LONGEST_HEADING, LONGEST_ROW, MOST_COLUMNS, TOO_LONG
from musicsvc.store.importing.files.unpacking.rows import packed, weight

ROWS_A_FETCH = 64  # each of which may have LONGEST_ROW
# Download no extensions, and limit memory whatever the size of the file.
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
}
NUMBERS = {"INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT", "BIGINT", "BOOLEAN"}
MEASURES = {"VARCHAR": "strlen({})", "BLOB": "octet_length({})"}


def connect(folder: str) -> duckdb.DuckDBPyConnection:
    """Open a database in memory. Without a folder for it, DuckDB writes what exceeds that into the current one."""
    return duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": folder})


def parts(path: str, folder: str, _options: dict[str, Any]) -> Iterator[Any]:
    """Yield the columns and the number of rows, then the rows. Raises Failure if the file is damaged."""
    read: int | None = None
    with connect(folder) as connection:
        # DuckDB treats a file name as a glob pattern; brackets escape its special characters.
        name = re.sub(r"([*?\[])", r"[\1]", path)
        try:
            # Whatever the folders are called: artist=x is no column.
            connection.read_parquet(name, hive_partitioning=False).create_view("file")
            size, columns = _describe(connection)
            names = [column[: LONGEST_HEADING + 1] for column, _ in columns[: MOST_COLUMNS + 1]]
            yield {"size": size, "headings": names, "line": None}
            read = 0
            for row in _rows(connection, columns, size):
                yield row
                read = row[0]
        except duckdb.OutOfMemoryException:
            raise MemoryError from None
        except duckdb.Error:
            damaged = "cannot be read as Parquet" if read is None else f"is damaged: it cannot be read after row {read}"
            raise Failure(f"{path} {damaged}.") from None


def _describe(connection: duckdb.DuckDBPyConnection) -> tuple[int, list[tuple[str, str]]]:
    """Return the number of rows, and names and types of the columns."""
    (size,) = connection.execute("SELECT count(*) FROM file").fetchone() or (0,)
    described = connection.execute("DESCRIBE file").fetchall()
    return size, [(column, kind) for column, kind, *_ in described]


def _rows(
    connection: duckdb.DuckDBPyConnection, columns: list[tuple[str, str]], size: int
) -> Iterator[list[Any] | tuple[Any, ...]]:
    """Yield the rows. The database leaves out those with long texts, before they are copied."""
    lengths = [MEASURES[kind].format(_quoted(column)) for column, kind in columns if kind in MEASURES]
    total = " + ".join(f"coalesce({length}, 0)" for length in lengths) or "0"
    nested = [at for at, (_, kind) in enumerate(columns) if kind.endswith(("]", ")"))]
    special = [at for at, (_, kind) in enumerate(columns) if kind not in {*NUMBERS, "VARCHAR"}]
    query = f"SELECT * FROM (SELECT *, row_number() OVER () FROM file) WHERE {total} <= {LONGEST_ROW}"  # noqa: S608 - quoted
    rows = connection.execute(query)
    expected = 1
    while some := rows.fetchmany(ROWS_A_FETCH):
        for *cells, number in some:
            for left_out in range(expected, number):
                yield _too_long(left_out, len(columns))
            expected = number + 1
            if nested and sum(weight(cells[at]) for at in nested) > LONGEST_ROW:
                yield _too_long(number, len(columns))
            else:
                yield (number, cells, found) if (found := packed(cells, special)) else (number, cells)
    for left_out in range(expected, size + 1):
        yield _too_long(left_out, len(columns))


def _too_long(number: int, width: int) -> list[Any]:
    return [number, [None] * width, [], TOO_LONG]


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
