"""Run queries over Parquet files: DuckDB in this process, Spark, or ClickHouse."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from musicsvc import extras, scratch
from musicsvc.store.recounting.dialects import DUCKDB, Dialect

MEMORY = "1GB"
BATCH = 10_000  # rows


class Engine(Protocol):
    """Runs SQL. `source` returns SQL for the rows of files in a folder, to put after FROM."""

    dialect: Dialect

    def source(self, folder: Path, paths: Sequence[str]) -> str: ...

    def rows(self, statement: str) -> Iterator[Sequence[Any]]: ...


class DuckDb:
    dialect = DUCKDB

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def source(self, folder: Path, paths: Sequence[str]) -> str:
        return self.dialect.source(folder, paths)

    def rows(self, statement: str) -> Iterator[Sequence[Any]]:
        self._connection.execute(statement)
        while batch := self._connection.fetchmany(BATCH):
            yield from batch


@contextmanager
def duckdb() -> Iterator[Engine]:
    """Start DuckDB with bounded memory; what does not fit goes to temporary files."""
    with extras.required("parquet"):
        import duckdb as library  # noqa: PLC0415 - an extra
    with scratch.folder(None) as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY,
            "temp_directory": str(folder),
            "autoinstall_known_extensions": False,
            "preserve_insertion_order": False,
        }
        with library.connect(":memory:", config=config) as connection:
            yield DuckDb(connection)
