"""Read a sheet of an Excel or OpenDocument workbook in a process of its own: `python THIS_FILE FILE [SHEET]`.

A workbook of a kilobyte can claim a billion cells, and whoever reads it ends for lack of memory. This process may use
MEMORY and SECONDS. It prints a line of JSON about the sheet, then a line for each row below the headings, and at the
end `{"end": true}`, or `{"fault": …}` with a key of `workbook.FAULTS`.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from typing import Any, NamedTuple

import orjson
from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    SheetTypeEnum,
    SheetVisibleEnum,
)

MEMORY = 1024**3  # bytes
SECONDS = 60
LONGEST_ROW = 1024**2  # characters
HEADINGS_WITHIN = 20  # rows that are not empty
DAY_ZERO = datetime(1899, 12, 31)  # noqa: DTZ001 - a workbook knows no time zones
FIRST_DAY = datetime(1900, 3, 1)  # noqa: DTZ001 - the first that all programs count alike; earlier is a duration
EXACT = 10**15  # whole numbers below have all of their digits

Row = tuple[int, list[Any]]  # its number in the sheet, from 1, and its cells


class TooLongError(Exception):
    """The row of this number has more characters than LONGEST_ROW."""


class Table(NamedTuple):
    """A sheet: its height, the row with its headings, and the rows below."""

    name: str
    height: int
    headings: Row
    rows: Iterator[Row]


def main(path: str, sheet: str | None = None) -> None:
    _limit()
    try:
        for part in _parts(path, sheet):
            _print(part)
    except TooLongError as error:
        _print({"fault": "long", "line": error.args[0]})
    except CalamineError:
        _print({"fault": "damaged"})
    except MemoryError:
        _print({"fault": "memory"})


def _print(part: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(part, option=orjson.OPT_APPEND_NEWLINE))


def _limit() -> None:
    """Limit memory and time where the system can."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has none

        for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_CORE, 0)):
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _parts(path: str, sheet: str | None) -> Iterator[Any]:
    """Yield what is printed, line by line."""
    with open(path, "rb") as file, CalamineWorkbook.from_filelike(file) as book:  # noqa: PTH123 - any name
        known = [each for each in book.sheets_metadata if each.typ is SheetTypeEnum.WorkSheet]
        names = [each.name for each in known]
        shown = [each.name for each in known if each.visible is SheetVisibleEnum.Visible]
        if sheet is not None and sheet not in names:
            yield {"fault": "sheet", "sheets": names}
            return
        tables = _tables(book, shown or names if sheet is None else [sheet])
        if not tables:
            yield {"fault": "empty"}
            return
        found = next((each for each in tables if _filled(each.headings) > 1), tables[0])
        others = [each.name for each in tables if each is not found]
        line, cells = found.headings
        headings = [str(_plain(cell)) for cell in cells]
        yield {"sheet": found.name, "others": others, "height": found.height, "line": line, "headings": headings}
        for number, cells in found.rows:
            yield _packed(number, cells)
        yield {"end": True}


def _tables(book: CalamineWorkbook, names: Sequence[str]) -> list[Table]:
    """Open the sheets that have a cell."""
    tables = (_table(book.get_sheet_by_name(name)) for name in names)
    return [table for table in tables if table is not None]


def _table(sheet: CalamineSheet) -> Table | None:
    """Find the headings of a sheet: the first row more than half as full as the fullest of its first rows."""
    rows = _rows(sheet)
    first = list(islice(rows, HEADINGS_WITHIN))
    if not first:
        return None
    fullest = max(map(_filled, first))
    place = next(at for at, row in enumerate(first) if 2 * _filled(row) > fullest)
    return Table(sheet.name, sheet.total_height, first[place], chain(first[place + 1 :], rows))


def _filled(row: Row) -> int:
    return sum(cell != "" for cell in row[1])


def _rows(sheet: CalamineSheet) -> Iterator[Row]:
    """Yield the rows that are not empty."""
    timed = _timed(sheet)
    merged = _Merged(sheet)
    for at, row in enumerate(sheet.iter_rows()):
        cells: list[Any] = [*row]
        if any(cell != "" for cell in cells):
            merged.fill(at, cells)
            if sum(len(cell) for cell in cells if isinstance(cell, str)) > LONGEST_ROW:
                raise TooLongError(at + 1)
            for column in timed:
                if type(cells[column]) is date:
                    cells[column] = datetime.combine(cells[column], time())
            yield at + 1, cells


def _timed(sheet: CalamineSheet) -> set[int]:
    """Return the places of the columns with times of day. In those, a date is the time at which it begins."""
    return {
        at
        for cells in sheet.iter_rows()
        for at, cell in enumerate(cells)
        if isinstance(cell, datetime) and cell >= FIRST_DAY
    }


class _Merged:
    """The merged cells of a sheet that reach over several rows."""

    def __init__(self, sheet: CalamineSheet) -> None:
        left = sheet.start[1] if sheet.start else 0
        ranges = sheet.merged_cell_ranges or ()
        self._begin = {(row, column - left): last for (row, column), (last, _) in ranges if last > row}
        self._reach: dict[int, tuple[int, Any]] = {}  # the last row of a cell, and its value, by its column

    def fill(self, at: int, cells: list[Any]) -> None:
        """Write the value of a merged cell into the other rows that it reaches."""
        if self._begin:
            for column, (last, value) in self._reach.items():
                if at <= last:
                    cells[column] = value
            begin = ((column, self._begin.get((at, column))) for column in range(len(cells)))
            self._reach |= {column: (last, cells[column]) for column, last in begin if last is not None}


def _packed(number: int, cells: Sequence[Any]) -> tuple[int, list[Any], list[int]]:
    """Return a row as it is printed, with the places of its durations, which are in seconds."""
    plain = [_plain(cell) for cell in cells]
    lasting = [at for at, cell in enumerate(plain) if isinstance(cell, timedelta)]
    for at in lasting:
        plain[at] = plain[at].total_seconds()
    return number, plain, lasting


def _plain(cell: Any) -> Any:
    """Return a cell as a text that reads as in other files, as an integer, or as a duration."""
    convert = PLAIN.get(type(cell))
    return cell if convert is None else convert(cell)


def _number(cell: float) -> int | str:
    return int(cell) if cell.is_integer() and abs(cell) < EXACT else repr(cell)


def _duration(cell: time) -> timedelta:
    return timedelta(hours=cell.hour, minutes=cell.minute, seconds=cell.second, microseconds=cell.microsecond)


def _moment(cell: datetime) -> str | timedelta:
    if cell < FIRST_DAY:
        return cell - DAY_ZERO
    return cell.isoformat()


PLAIN: dict[type, Callable[[Any], Any]] = {
    bool: lambda cell: str(cell).upper(),
    float: _number,
    time: _duration,
    datetime: _moment,
    date: date.isoformat,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
