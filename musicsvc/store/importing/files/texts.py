"""Read CSV and JSON Lines, plain or gzipped. The importer does this itself, in pieces of bounded size."""

import csv
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats
from musicsvc.store.importing.files.lines import Lines, TooLongError
from musicsvc.store.importing.files.records import (
    MOST_COLUMNS,
    NONE,
    PIECE,
    TOO_LONG,
    Keys,
    Limits,
    Pause,
    Reader,
    Record,
    Step,
    headings,
    is_quoted,
)
from musicsvc.wording import unquoted

FURTHER = "further cells"
Row = tuple[int, list[str] | None]  # the number of its first line, and its cells; None: it is too long


class TextReader(Reader):
    """Reads a text file. A reader that maps no columns has `columns` None."""

    columns: list[str] | None = None

    def __init__(self, path: Path, limits: Limits = NONE) -> None:
        self._lines = Lines(path, limits)
        self.size = self._lines.size

    @property
    def position(self) -> int:
        return self._lines.position

    def close(self) -> None:
        self._lines.close()

    def steps(self) -> Iterator[Step]:
        due = PIECE
        for record in self.records():
            if record is not None:
                yield record
            if self._lines.taken >= due:
                yield Pause.FULL
                due = self._lines.taken + PIECE

    @abstractmethod
    def records(self) -> Iterator[Record | None]:
        """Yield the rows of the file, and None for lines that are no row."""

    def each(self) -> Iterator[tuple[int, str | None]]:
        """Yield the lines with their numbers. None: it is too long."""
        while True:
            number = self._lines.begin_row()
            try:
                yield number, next(self._lines)
            except StopIteration:
                return
            except TooLongError:
                yield number, None

    def rows(self, cells: Iterator[list[str]]) -> Iterator[Row]:
        """Yield the rows of a table, blank ones too, of which `cells` reads the lines. Raises Failure for bad CSV."""
        self._lines.quoted = True
        while True:
            begins = self._lines.begin_row()
            try:
                yield begins, next(cells)
            except StopIteration:
                return
            except TooLongError:
                yield begins, None
            except csv.Error as error:
                raise self._lines.broken(f"cannot be read as CSV: {error}", begins) from None


class CsvReader(TextReader):
    """Reads a CSV file with a header. The separator is a comma, a semicolon or a tab."""

    def __init__(self, path: Path, limits: Limits = NONE) -> None:
        """Open the file and read the header. Raises Failure if the header is missing, too large or not unique."""
        separator = _separator(path)
        super().__init__(path, limits)
        self._rows = self.rows(csv.reader(self._lines, delimiter=separator, strict=True))
        try:
            self._names = self._header()
        except BaseException:
            self.close()
            raise
        self.columns = self._names

    def _header(self) -> list[str]:
        for _, row in self._rows:
            if row is None:
                raise self._lines.broken(f"has more than {MOST_COLUMNS:,} columns, or one of them a very long heading")
            if any(row):
                self._is_quoted = is_quoted(row)
                return headings([*map(unquoted, row)] if self._is_quoted else row, self._lines.broken)
        raise Failure(f"{self._lines.path} is empty.")

    def records(self) -> Iterator[Record | None]:
        """Yield the rows. A row with more or fewer cells than the header gets a `fault`."""
        for begins, row in self._rows:
            if row is None:
                yield Record(begins, {}, TOO_LONG)
            elif any(row):
                yield table_record(begins, self._names, [*map(unquoted, row)] if self._is_quoted else row)
            else:
                yield None


def _separator(path: Path) -> str:
    """Return the separator (comma, semicolon or tab) that splits the header into the most columns."""
    first = formats.first_line(path)

    def columns(sign: str) -> int:
        try:
            return len(next(csv.reader([first], delimiter=sign), []))
        except csv.Error:  # a cell is too long; CsvReader reports this later
            return 0

    return max(formats.SEPARATORS, key=columns)


def table_record(line: int, names: Sequence[str], row: Sequence[str]) -> Record:
    """Return a row of a table as a Record. It gets a `fault` if it has more or fewer cells than `names`."""
    if len(row) == len(names):
        return Record(line, dict(zip(names, row, strict=True)))
    values: dict[str, Any] = dict(zip(names, row, strict=False))
    if len(row) > len(names):
        values[FURTHER] = row[len(names) :]
    return Record(line, values, f"the row has {len(row)} cells, the header {len(names)}")


class JsonLinesReader(TextReader):
    """Reads a JSON object per line. All of them together have at most MOST_COLUMNS keys."""

    def __init__(self, path: Path, limits: Limits = NONE) -> None:
        super().__init__(path, limits)
        self._keys = Keys()

    def records(self) -> Iterator[Record | None]:
        """Yield a row for each line that is not blank. A line that is not a JSON object gets a `fault`."""
        for number, line in self.each():
            if line is None:
                yield Record(number, {}, TOO_LONG)
            elif line.isspace():
                yield None
            else:
                yield self._record(number, line)

    def _record(self, number: int, line: str) -> Record:
        try:
            values = orjson.loads(line)
        except orjson.JSONDecodeError:
            return Record(number, {"row": line.strip()}, "the line is not valid JSON")
        if not isinstance(values, dict):
            return Record(number, {"row": line.strip()}, "the line is not a JSON object")
        if fault := self._keys.fault(values):
            return Record(number, {"row": line.strip()}, fault)
        return Record(number, values)
