"""Report the refused rows of an import: one line per reason for stderr, and all rows in a CSV file."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import time, timedelta
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from musicsvc.cli.output_file import open_output
from musicsvc.store.importing.columns import Guess, Parse
from musicsvc.store.importing.files.records import Reader, Record
from musicsvc.store.importing.summary import Refusal
from musicsvc.store.importing.values import clock_text, span

MOST_RANGES, MOST_NAMES = 12, 12  # maximum per line on stderr
IN_MEMORY = 1 << 20  # bytes


def lines(refused: Iterable[Refusal]) -> Iterator[str]:
    """Yield one line of text per reason, with the line numbers and invalid values of the rows refused for it."""
    groups: dict[tuple[str | None, str], list[Refusal]] = {}
    for row in refused:
        groups.setdefault((row.member, row.kind), []).append(row)
    for rows in groups.values():
        if len(rows) == 1:
            yield f"line {rows[0].line}: {rows[0].reason}"
            continue
        names = list(dict.fromkeys(name for row in rows for name in row.names))
        named = (_some(names, MOST_NAMES),) if names else ()
        where = _some(list(_ranges([row.line for row in rows])), MOST_RANGES)
        yield f"lines {where} ({len(rows):,} rows): {rows[0]._replace(names=named).reason}"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Yield ranges of consecutive numbers, such as `4-7`, and each other number by itself."""
    begins = ends = numbers[0]
    for number in (*numbers[1:], None):
        if number is not None and number == ends + 1:
            ends = number
            continue
        yield str(begins) if begins == ends else f"{begins}-{ends}"
        if number is not None:
            begins = ends = number


def _some(parts: Sequence[str], most: int) -> str:
    more = len(parts) - most
    return ", ".join(parts[:most]) + (f" and {more:,} more" if more > 0 else "")


class RefusedFile:
    """Collects the refused rows and their cells during an import, then writes them to a CSV file."""

    def __init__(self, target: Path, reader: Reader) -> None:
        self._target = target
        self._records: dict[tuple[str | None, int], Mapping[str, Any]] = {}
        self._columns = dict.fromkeys(reader.columns or ())
        self._added = 0
        self._rows: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by write()
        self.reader: Reader = _Watched(reader, self._records)

    def add(self, refused: Sequence[Refusal], columns: Iterable[Guess] = ()) -> None:
        """Store the rows of `refused` that are new since the last call. `refused`: all rows refused so far.

        `columns`: what the columns were taken for, which says how long the durations of a workbook are.
        """
        parsers = {each.column: each.parse for each in columns}
        for row in islice(refused, self._added, None):
            values = {
                column: _clock(value, parsers.get(column)) if isinstance(value, time | timedelta) else value
                for column, value in self._records[row.member, row.line].items()
            }
            self._columns |= dict.fromkeys(values)
            self._rows.write(json.dumps([row.line, row.reason, values], default=str).encode() + b"\n")
        self._added = len(refused)
        self._records.clear()

    def write(self) -> None:
        """Write the CSV file: the line number, the reason, and the unchanged cells of each row."""
        names = ["line", "reason"]
        for column in self._columns:
            while column in names:
                column += "_"  # noqa: PLW2901 - the file has a column of the same name
            names.append(column)
        self._rows.seek(0)
        with self._rows, open_output(self._target) as file:
            text = io.TextIOWrapper(file, "utf-8", newline="")
            table = csv.writer(text, quoting=csv.QUOTE_ALL)
            table.writerow(names)
            for packed in self._rows:
                line, reason, values = json.loads(packed)
                table.writerow([line, reason, *(_text(values.get(column)) for column in self._columns)])
            text.flush()
            text.detach()


class _Watched(Reader):
    """A reader that yields the records of another reader and stores the values of each record in `records`."""

    def __init__(self, reader: Reader, records: dict[tuple[str | None, int], Mapping[str, Any]]) -> None:
        self._reader = reader
        self._records = records
        self.columns = reader.columns
        self.size = reader.size
        self.name = reader.name
        self.remark = reader.remark

    @property
    def position(self) -> int:
        return self._reader.position

    def __iter__(self) -> Iterator[Record]:
        for record in self._reader:
            self._records[record.member, record.line] = record.values
            yield record

    def close(self) -> None:
        self._reader.close()


def _clock(value: time | timedelta, parse: Parse | None) -> str:
    """Return a duration as the import reads it, in the form that says which digits are hours."""
    try:
        length = cast("int", parse(value)) / 1000 if parse is not None else span(value)
    except ValueError:
        length = span(value)
    return clock_text(length)


def _text(value: Any) -> str:
    """Return the text of a CSV cell for a value, in a form that an import can read back."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return ";".join(map(_text, value))
    return json.dumps(value, ensure_ascii=False)
