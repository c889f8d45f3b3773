"""CSV, JSON Lines and Parquet as one stream of records: a number to find it by, and its values by column."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from musicsvc import extras
from musicsvc.errors import Failure
from musicsvc.store.importing.files import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

PARQUET = b"PAR1"
FORMATS = ("csv", "jsonl", "parquet")
FURTHER = "further cells"
SEPARATORS = ",;\t"
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


class Record(NamedTuple):
    """One row: the line on which it begins, its values by column, and the fault for which it is refused as a whole.

    `note` is a key of summary.NOTES for a row that is none of what is imported; `member` the file within an archive.
    """

    line: int
    values: Mapping[str, Any]
    fault: str | None = None
    note: str | None = None
    member: str | None = None


class Reader(ABC):
    """A file that is open; `columns` is None where they are only known row by row."""

    columns: list[str] | None
    size: int

    @property
    @abstractmethod
    def position(self) -> int:
        """How much of `size` has been read."""

    @abstractmethod
    def __iter__(self) -> Iterator[Record]:
        """The records, once."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def open_file(path: Path, form: str | None = None) -> Reader:
    """A reader of the file's format: as told, else by its name, else by its first bytes. Raises Failure."""
    kind = form or format_of(path)
    if kind not in FORMATS:
        raise Failure(f"There is no format {kind}. The formats are {', '.join(FORMATS)}.")
    if kind == "parquet":
        with extras.required("parquet"):
            from musicsvc.store.importing.parquet import ParquetReader  # noqa: PLC0415 - the extra may be missing
        return ParquetReader(path)
    if kind == "csv":
        return CsvReader(path)
    _refuse_document(path)
    return JsonLinesReader(path)


def format_of(path: Path) -> str:
    """The format that the name tells, or else the first bytes; Failure where neither does."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:]
    for suffix in last:
        if suffix in SUFFIXES:
            return SUFFIXES[suffix]
    return _sniff(path)


def _sniff(path: Path) -> str:
    with closing(Lines(path)) as lines:
        if lines.starts_with(PARQUET):
            return "parquet"
    first = _first_line(path)
    if first.startswith(("{", "[")):
        return "jsonl"
    if any(sign in first for sign in SEPARATORS):
        return "csv"
    raise Failure(f"The format of {path} cannot be told. Say it with --format, one of {', '.join(FORMATS)}.")


def _first_line(path: Path) -> str:
    """The first line that is not blank, without white space around it."""
    with closing(Lines(path)) as lines:
        return next(filter(None, map(str.strip, lines)), "")


def _separator(path: Path) -> str:
    """The sign that cuts the header into the most columns; the comma in doubt."""
    first = _first_line(path)

    def columns(sign: str) -> int:
        try:
            return len(next(csv.reader([first], delimiter=sign), []))
        except csv.Error:  # a cell that is too long, which reading the file reports
            return 0

    return max(SEPARATORS, key=columns)


def _refuse_document(path: Path) -> None:
    """Raise Failure for JSON that is one value and not an object per line."""
    first = _first_line(path)
    if first.startswith("["):
        what = "is a JSON array"
    elif first == "{":
        what = "is one JSON document over several lines"
    else:
        return
    raise Failure(f"{path} {what}. JSON Lines is expected, one object per line; jq -c '.[]' FILE writes it that way.")


class TextReader(Reader):
    """A reader of lines."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self.size = self._lines.size

    @property
    def position(self) -> int:
        """How many bytes of the file have been read."""
        return self._lines.position

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class CsvReader(TextReader):
    """Values separated by commas, semicolons or tabs under a row of names."""

    def __init__(self, path: Path) -> None:
        """Read the names; Failure where there are none, or one stands twice."""
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
        names = [name.strip() for name in found[1]]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise self._lines.broken(f"names the column {twice[0]!r} twice")
        return names

    def _next(self) -> tuple[int, list[str]] | None:
        """The line on which the next row that is not blank begins, and the row; None at the end."""
        while True:
            begins = self._lines.number + 1
            try:
                row = next(self._rows)
            except StopIteration:
                return None
            except csv.Error as error:
                raise self._lines.broken(f"cannot be read as CSV: {error}", begins) from None
            if row:
                return begins, row

    def __iter__(self) -> Iterator[Record]:
        """The rows; one of another length than the header is a fault of its own."""
        while (found := self._next()) is not None:
            begins, row = found
            yield table_record(begins, self._names, row)


def table_record(line: int, names: Sequence[str], row: Sequence[str]) -> Record:
    """Return the record of a table's row; a row with more or fewer cells than the header is faulty."""
    if len(row) == len(names):
        return Record(line, dict(zip(names, row, strict=True)))
    values: dict[str, Any] = dict(zip(names, row, strict=False))
    if len(row) > len(names):
        values[FURTHER] = row[len(names) :]
    return Record(line, values, f"the row has {len(row)} cells, the header {len(names)}")


class JsonLinesReader(TextReader):
    """A JSON object a line."""

    columns = None

    def __iter__(self) -> Iterator[Record]:
        """The objects; a line that is none is a fault of its own."""
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
