"""Open files of all formats, and read CSV and JSON Lines."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from musicsvc import extras
from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats
from musicsvc.store.importing.files.lines import Lines
from musicsvc.store.importing.files.records import Reader, Record, headings
from musicsvc.store.importing.files.workbook import WorkbookReader

FURTHER = "further cells"


def open_file(path: Path, form: str | None = None, sheet: str | None = None) -> Reader:
    """Open the file in the format `form`, by default the detected one. Raises Failure if it cannot be read.

    `sheet`: the name of the sheet to read of a workbook.
    """
    kind = formats.format_of(path, form)
    if sheet is not None and kind not in formats.WORKBOOKS:
        raise Failure(f"{path} has no sheets. Leave out --sheet.")
    if kind == "parquet":
        with extras.required("parquet"):
            from musicsvc.store.importing.files.parquet import ParquetReader  # noqa: PLC0415 - the extra may be missing
        return ParquetReader(path).named(path)
    if kind == "csv":
        return CsvReader(path).named(path)
    if kind == "jsonl":
        _refuse_document(path)
        return JsonLinesReader(path).named(path)
    return WorkbookReader(path, sheet).named(path)


def _separator(path: Path) -> str:
    """Return the separator (comma, semicolon or tab) that splits the header into the most columns."""
    first = formats.first_line(path)

    def columns(sign: str) -> int:
        try:
            return len(next(csv.reader([first], delimiter=sign), []))
        except csv.Error:  # a cell is too long; CsvReader reports this later
            return 0

    return max(formats.SEPARATORS, key=columns)


def _refuse_document(path: Path) -> None:
    """Raise Failure if the file is a single JSON value instead of one JSON object per line."""
    first = formats.first_line(path)
    if first.startswith("["):
        what = "is a JSON array"
    elif first == "{":
        what = "is one JSON document over several lines"
    else:
        return
    raise Failure(f"{path} {what}. JSON Lines is expected, one object per line; jq -c '.[]' FILE writes it that way.")


class TextReader(Reader):
    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self.size = self._lines.size

    @property
    def position(self) -> int:
        return self._lines.position

    def close(self) -> None:
        self._lines.close()


class CsvReader(TextReader):
    """Reads a CSV file with a header. The separator is a comma, a semicolon or a tab."""

    def __init__(self, path: Path) -> None:
        """Open the file and read the header. Raises Failure if the header is missing or has a column twice."""
        separator = _separator(path)
        super().__init__(path)
        self._rows = csv.reader(iter(self._lines), delimiter=separator, strict=True)
        try:
            self._names = self._header()
        except BaseException:
            self.close()
            raise
        self.columns = self._names

    def _header(self) -> list[str]:
        found = self._next()
        if found is None:
            raise Failure(f"{self._lines.path} is empty.")
        return headings(found[1], self._lines.broken)

    def _next(self) -> tuple[int, list[str]] | None:
        """Return the next row that is not blank and the number of its first line, or None at the end of the file."""
        while True:
            begins = self._lines.number + 1
            try:
                row = next(self._rows)
            except StopIteration:
                return None
            except csv.Error as error:
                raise self._lines.broken(f"cannot be read as CSV: {error}", begins) from None
            if any(row):
                return begins, row

    def __iter__(self) -> Iterator[Record]:
        """Yield the rows. A row with more or fewer cells than the header gets a `fault`."""
        while (found := self._next()) is not None:
            begins, row = found
            yield table_record(begins, self._names, row)


def table_record(line: int, names: Sequence[str], row: Sequence[str]) -> Record:
    """Return a row of a table as a Record. It gets a `fault` if it has more or fewer cells than `names`."""
    if len(row) == len(names):
        return Record(line, dict(zip(names, row, strict=True)))
    values: dict[str, Any] = dict(zip(names, row, strict=False))
    if len(row) > len(names):
        values[FURTHER] = row[len(names) :]
    return Record(line, values, f"the row has {len(row)} cells, the header {len(names)}")


class JsonLinesReader(TextReader):
    columns = None

    def __iter__(self) -> Iterator[Record]:
        """Yield a row for each line that is not blank. A line that is not a JSON object gets a `fault`."""
        for line in self._lines:
            if line.isspace():
                continue
            try:
                values = orjson.loads(line)
            except orjson.JSONDecodeError:
                yield Record(self._lines.number, {"row": line.strip()}, "the line is not valid JSON")
                continue
            if isinstance(values, dict):
                yield Record(self._lines.number, values)
            else:
                yield Record(self._lines.number, {"row": line.strip()}, "the line is not a JSON object")
