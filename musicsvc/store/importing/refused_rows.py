"""The refused rows of an import: a line of text for each reason, and a CSV file that can be corrected and imported."""

import csv
import io
import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import time, timedelta
from itertools import groupby
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from musicsvc.store.importing.cells.durations import clock_text, span
from musicsvc.store.importing.cells.notations import Parse
from musicsvc.store.importing.files.records import REFUSED, Reader, Record, Through
from musicsvc.store.importing.summary import ImportSummary, Refusal
from musicsvc.wording import quoted, some_of

MOST_RANGES, MOST_NAMES = 12, 12  # maximum per line
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
        named = (some_of(names, MOST_NAMES),) if names else ()
        where = some_of(list(_ranges([row.line for row in rows])), MOST_RANGES)
        yield f"lines {where} ({len(rows):,} rows): {rows[0]._replace(names=named).reason}"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Yield ranges of consecutive numbers, such as `4-7`, and each other number by itself."""
    for _, together in groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        first, *others = (number for _, number in together)
        yield f"{first}-{others[-1]}" if others else str(first)


class RefusedRows(Through):
    """Reads another reader for an import. Collects the refused rows and their cells, then writes them as CSV."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        self._records: deque[Record] = deque()  # read, but not in the summary yet
        self._names = dict.fromkeys(reader.columns or ())
        self._added = self._done = 0
        self._rows: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by write()

    def changed(self, record: Record) -> Record:
        self._records.append(record)
        return record

    def add(self, summary: ImportSummary) -> None:
        """Store the rows that were refused since the last call."""
        read = [self._records.popleft() for _ in range(summary.rows - self._done)]
        cells = {(record.member, record.line): record.values for record in read}
        parsers = {each.column: each.parse for each in summary.columns}
        for row in summary.refused[self._added :]:
            values = {
                column: _clock(value, parsers.get(column)) if isinstance(value, time | timedelta) else value
                for column, value in cells[row.member, row.line].items()
            }
            self._names |= dict.fromkeys(values)
            self._rows.write(json.dumps([row.line, row.reason, values], default=str).encode() + b"\n")
        self._added, self._done = len(summary.refused), summary.rows

    def write(self, file: IO[bytes]) -> None:
        """Write the CSV file: the line number, the reason, and the cells of each row. Call this once.

        A `'` before formulas keeps spreadsheets from running them. Reading the file takes it off again.
        """
        names = [*REFUSED]
        taken = {*names}
        for column in self._names:
            while column in taken:
                column += "_"  # noqa: PLW2901 - the file has a column of the same name
            names.append(column)
            taken.add(column)
        self._rows.seek(0)
        with self._rows:
            text = io.TextIOWrapper(file, "utf-8", newline="")
            table = csv.writer(text, quoting=csv.QUOTE_ALL)
            table.writerow(map(quoted, names))
            for packed in self._rows:
                line, reason, values = json.loads(packed)
                cells = [reason, *(_text(values.get(column)) for column in self._names)]
                table.writerow([line, *map(quoted, cells)])
            text.flush()
            text.detach()


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
