"""Read Parquet files with DuckDB. Rows are numbered from 1, in place of lines."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb

from musicsvc import scratch
from musicsvc.errors import Failure
from musicsvc.store.importing.files.lines import unreadable
from musicsvc.store.importing.files.records import Reader, Record

ROWS_A_FETCH = 1000
# Download no extensions, and limit memory whatever the size of the file.
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
}


class ParquetReader(Reader):
    """Reads a Parquet file. Raises Failure if the file cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        try:
            path.open("rb").close()
        except OSError as error:
            raise unreadable(path, error) from None
        # DuckDB treats a file name as a glob pattern; brackets escape its special characters.
        name = re.sub(r"([*?\[])", r"[\1]", str(path))
        self._open = ExitStack()
        folder = self._open.enter_context(scratch.folder(None))
        # Without a folder for it, DuckDB writes what exceeds the memory into the current one.
        self._connection = duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": str(folder)})
        self._open.callback(self._connection.close)
        try:
            (self.size,) = self._connection.execute("SELECT count(*) FROM read_parquet(?)", [name]).fetchone() or (0,)
            self._rows = self._connection.execute("SELECT * FROM read_parquet(?)", [name])
        except duckdb.Error:
            self.close()
            raise Failure(f"{path} cannot be read as Parquet.") from None
        self.columns = [column[0] for column in self._rows.description or ()]

    @property
    def position(self) -> int:
        return self._read

    def __iter__(self) -> Iterator[Record]:
        names = self.columns or []
        while rows := self._fetch():
            for row in rows:
                self._read += 1
                yield Record(self._read, dict(zip(names, row, strict=True)))

    def _fetch(self) -> list[tuple[object, ...]]:
        try:
            return self._rows.fetchmany(ROWS_A_FETCH)
        except duckdb.Error:
            raise Failure(f"{self._path} is damaged: it cannot be read after row {self._read}.") from None

    def close(self) -> None:
        self._open.close()
