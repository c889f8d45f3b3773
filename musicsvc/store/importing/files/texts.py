"""Read CSV and JSON Lines, plain or gzipped. The importer does this itself, in pieces of bounded size."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from musicsvc.errors import Failure
from musicsvc.limited import PIECE, Pause
from musicsvc.store.importing.files.lines import Lines
from musicsvc.store.importing.files.quoting import Rows
from musicsvc.store.importing.files.records import (
    NONE,
    REPEATED,
    TOO_LONG,
    Keys,
    Limits,
    Reader,
    Record,
    Remark,
    Step,
    headings,
    is_quoted,
    repeats,
)
from musicsvc.wording import unquoted

FURTHER = "further cells"
MOST_BRACKETS = 250  # of a row of JSON that is surely not nested too deep


class TextReader(Reader):
    """Reads a text file. A reader that maps no columns has `columns` None."""

    columns: list[str] | None = None

    def __init__(self, path: Path, limits: Limits = NONE, encoding: str | None = None) -> None:
        self._lines = Lines(path, limits, encoding)
        self.size = self._lines.size

    @property
    def encoding(self) -> str:
        return self._lines.encoding

    @property
    def remarks(self) -> Sequence[Remark]:
        if not self._lines.is_guessed:
            return super().remarks
        guessed = Remark(
            f"The file is not UTF-8 and was read as {self.encoding}.", "If it is another, add --encoding NAME."
        )
        return [guessed, *super().remarks]

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


def faulty(number: int, fault: str, text: str) -> Record:
    """Return the record of a row that cannot be read, with its text."""
    return Record(number, {} if fault == TOO_LONG else {"row": text}, fault)


class CsvReader(TextReader):
    """Reads a CSV file with a header. The separator is a comma, a semicolon, a tab, or what the first line names."""

    def __init__(
        self, path: Path, limits: Limits = NONE, encoding: str | None = None, comments: tuple[str, ...] = ()
    ) -> None:
        """Open the file and read the header. Raises Failure if the header is missing, too large or not unique."""
        super().__init__(path, limits, encoding)
        try:
            self._rows = Rows(self._lines, comments)
            self._names = self._header()
        except BaseException:
            self.close()
            raise
        self.columns = self._names

    def _header(self) -> list[str]:
        line = self._rows.fit()
        skipped: list[int] = []
        for number, row, fault, _ in self._rows:
            if row is None:
                raise self._lines.broken(f"cannot be read as CSV: {fault}", number)
            if number >= line and any(row):
                self._is_quoted = is_quoted(row)
                self._first = row
                self.skipped = skipped
                broken = partial(self._lines.broken, line=number)
                return headings([*map(unquoted, row)] if self._is_quoted else row, broken)
            skipped += [number] if any(row) else []
        raise Failure(f"{self._lines.path} is empty.")

    def records(self) -> Iterator[Record | None]:
        """Yield the rows. A row with more or fewer cells than the header gets a `fault`."""
        last = self._first[-1:]
        for begins, row, fault, text in self._rows:
            if row is None:
                cells = text.split(self._rows.sign)
                plain = dict(zip(self._names, cells, strict=True)) if len(cells) == len(self._names) else {}
                found = faulty(begins, fault, text)
                yield found._replace(values={**found.values, **plain})
            elif row[-1:] == last and repeats(row, self._first):
                yield Record(begins, {}, note=REPEATED)
            elif any(row):
                yield table_record(begins, self._names, [*map(unquoted, row)] if self._is_quoted else row)
            else:
                yield None


def table_record(line: int, names: Sequence[str], row: Sequence[str]) -> Record:
    """Return a row of a table as a Record. It gets a `fault` if it has more or fewer cells than `names`."""
    if len(row) == len(names):
        # A third of the time of a call of the class, of which there is one for each row.
        return tuple.__new__(Record, (line, dict(zip(names, row, strict=True)), None, None, None, False))
    values: dict[str, Any] = dict(zip(names, row, strict=False))
    if len(row) > len(names):
        values[FURTHER] = row[len(names) :]
    return Record(line, values, f"the row has {len(row)} cells, the header {len(names)}")


class JsonLinesReader(TextReader):
    """Reads a JSON object per line. All of them together have at most MOST_COLUMNS keys."""

    def __init__(self, path: Path, limits: Limits = NONE, encoding: str | None = None) -> None:
        super().__init__(path, limits, encoding)
        self._keys = Keys()

    def records(self) -> Iterator[Record | None]:
        """Yield a row for each line that is not blank. A line that is not a JSON object gets a `fault`."""
        for number, line, fault in self._lines:
            if fault:
                yield faulty(number, fault, line)
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
        if fault := self._keys.fault(values) or _nested(line, values):
            return Record(number, {"row": line.strip()}, fault)
        return Record(number, values)


def _nested(line: str, values: Any) -> str | None:
    """Return the fault of a row that is nested so deep that it cannot be written as JSON again, or None."""
    if line.count("[") + line.count("{") > MOST_BRACKETS:
        try:
            orjson.dumps(values)
        except orjson.JSONEncodeError:
            return "the line is nested too deep"
    return None
