"""Write Parquet files with DuckDB (extra `parquet`)."""

from collections.abc import Iterator

import orjson

from musicsvc import extras, scratch
from musicsvc.reports.columns import Kind
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
}


def parquet(table: Table) -> Iterator[bytes]:
    """Yield a Parquet file in pieces, with days as dates. Raises Failure if the extra `parquet` is not installed."""
    with extras.required("parquet"):
        import duckdb  # noqa: PLC0415 - an extra
    with scratch.folder(table.folder) as folder:
        source, target = folder / "rows.json", folder / "rows.parquet"
        with source.open("wb") as lines:
            lines.writelines(orjson.dumps(dict(zip(table.names, row, strict=True))) + b"\n" for row in table.rows)
        types = {each.name: TYPES[each.kind] for each in table.columns}
        with duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": str(folder)}) as connection:
            rows = connection.read_json(str(source), columns=types, format="newline_delimited")
            rows.write_parquet(str(target), compression="zstd")
        with target.open("rb") as written:
            while piece := written.read(PIECE):
                yield piece
