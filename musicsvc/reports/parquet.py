"""Rows in, a Parquet file out, through DuckDB (extra `parquet`)."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

import orjson

from musicsvc import extras

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Nothing is fetched from anywhere, and memory stays what it is whatever the file.
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
}
TYPES = {"date": "DATE", "track": "VARCHAR", "album": "VARCHAR", "artist": "VARCHAR", "artists": "VARCHAR"}
CHANGE = "_change"


def write(columns: Sequence[str], rows: Iterable[Sequence[object]], file: IO[bytes]) -> None:
    """Write the rows; texts as they are, days as dates. Raises Failure where the extra is missing."""
    with extras.required("parquet"):
        import duckdb  # noqa: PLC0415 - an extra
    with TemporaryDirectory(prefix="musicsvc-") as folder:
        source, target = Path(folder, "rows.json"), Path(folder, "rows.parquet")
        with source.open("wb") as lines:
            lines.writelines(orjson.dumps(dict(zip(columns, row, strict=True))) + b"\n" for row in rows)
        types = {column: _type(column) for column in columns}
        with duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": folder}) as connection:
            table = connection.read_json(str(source), columns=types, format="newline_delimited")
            table.write_parquet(str(target), compression="zstd")
        with target.open("rb") as written:
            copyfileobj(written, file)


def _type(column: str) -> str:
    return TYPES.get(column, "DOUBLE" if column.endswith(CHANGE) else "BIGINT")
