"""Write Parquet files with DuckDB (extra `parquet`)."""

from collections.abc import Iterator

import orjson

from musicsvc import extras
from musicsvc.reports import scratch
from musicsvc.reports.tables import PIECE, Table

# No downloads, and memory that does not grow with the file.
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
}
TYPES = {"date": "DATE", "track": "VARCHAR", "album": "VARCHAR", "artist": "VARCHAR", "artists": "VARCHAR"}
CHANGE = "_change"


def parquet(table: Table) -> Iterator[bytes]:
    """Yield a Parquet file in pieces, with days as dates. Raises Failure if the extra `parquet` is not installed."""
    with extras.required("parquet"):
        import duckdb  # noqa: PLC0415 - an extra
    with scratch.folder(table.folder) as folder:
        source, target = folder / "rows.json", folder / "rows.parquet"
        with source.open("wb") as lines:
            lines.writelines(orjson.dumps(dict(zip(table.columns, row, strict=True))) + b"\n" for row in table.rows)
        types = {column: _type(column) for column in table.columns}
        with duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": str(folder)}) as connection:
            rows = connection.read_json(str(source), columns=types, format="newline_delimited")
            rows.write_parquet(str(target), compression="zstd")
        with target.open("rb") as written:
            while piece := written.read(PIECE):
                yield piece


def _type(column: str) -> str:
    return TYPES.get(column, "DOUBLE" if column.endswith(CHANGE) else "BIGINT")
