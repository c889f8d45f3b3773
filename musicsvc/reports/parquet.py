"""Write Parquet files with DuckDB (extra `parquet`)."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import orjson

from musicsvc import extras, scratch
from musicsvc.errors import Failure
from musicsvc.reports.columns import Column, Kind
from musicsvc.reports.tables import PIECE, Table

# No downloads, and memory that does not grow with the file.
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
}
TYPES = {
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.ID: "BIGINT",
    Kind.COUNT: "BIGINT",
    Kind.PERCENT: "DOUBLE",
    Kind.INSTANT: "BIGINT",
}
VALUES = {Kind.INSTANT: 'make_timestamp("{0}") AS "{0}"'}
ERRNO = re.compile(r'"errno":"([0-9]+)"')  # in errors of DuckDB


class Writer:
    """Converts files with a JSON object in each line to Parquet files."""

    def __init__(self, folder: Path) -> None:
        """`folder`: for temporary files. Raises Failure if the extra `parquet` is not installed."""
        with extras.required("parquet"):
            import duckdb  # noqa: PLC0415 - an extra
        self._errors = duckdb.Error
        self._connection = duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": str(folder)})

    def write(self, lines: Path, target: Path, columns: Sequence[Column], *, ordered: bool = False) -> None:
        """Convert the file `lines`. `ordered`: sort the rows by all columns. Raises OSError if that is impossible."""
        types = {each.name: TYPES[each.kind] for each in columns}
        values = (VALUES.get(each.kind, '"{0}"').format(each.name) for each in columns)
        try:
            rows = self._connection.read_json(str(lines), columns=types, format="newline_delimited")
            rows = rows.project(", ".join(values))
            (rows.order("ALL") if ordered else rows).write_parquet(str(target), compression="zstd")
        except self._errors as error:
            raise _translate(error, target) from error


def _translate(error: Exception, target: Path) -> Exception:
    number = ERRNO.search(str(error))
    if number is None:
        return Failure(f"{target} cannot be written: {error}")
    return OSError(int(number[1]), os.strerror(int(number[1])), str(target))


def json_lines(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    names = [each.name for each in columns]
    return (orjson.dumps(dict(zip(names, row, strict=True))) + b"\n" for row in rows)


def parquet(table: Table) -> Iterator[bytes]:
    """Yield a Parquet file in pieces, with days as dates. Raises Failure if the extra `parquet` is not installed."""
    with scratch.folder(table.folder) as folder:
        writer, source, target = Writer(folder), folder / "rows.json", folder / "rows.parquet"
        with source.open("wb") as lines:
            lines.writelines(json_lines(table.columns, table.rows))
        writer.write(source, target, table.columns)
        with target.open("rb") as written:
            while piece := written.read(PIECE):
                yield piece
