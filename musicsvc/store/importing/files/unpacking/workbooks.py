"""Read a sheet of an Excel or OpenDocument workbook. The line of a row is its number in the sheet."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

from musicsvc.errors import Failure
from musicsvc.store.importing import headings
from musicsvc.store.importing.files.records import (
    HEADINGS_WITHIN,
    LONGEST_HEADING,
    LONGEST_ROW,
    MOST_COLUMNS,
    REPEATED,
    TOO_LONG,
    filled,
    headings_at,
    repeats,
)
from musicsvc.store.importing.files.unpacking.rows import packed
from musicsvc.wording import cut

EMPTY = "is empty: no sheet has a cell."
MOST_SHEETS = 100  # of those that are listed
DAY_ZERO = datetime(1899, 12, 31)  # noqa: DTZ001 - a workbook knows no time zones
FIRST_DAY = datetime(1900, 3, 1)  # noqa: DTZ001 - the first that all programs count alike; earlier is a duration
EXACT = 10**15  # whole numbers below have all of their digits

Row = tuple[int, list[Any]]  # its number in the sheet, from 1, and its cells


class Table(NamedTuple):
    """A sheet: its height, the row with its headings, and the rows below."""

    name: str
    height: int
    headings: Row
    rows: Iterator[Row]
    skipped: list[int]  # the rows above


def parts(path: str, _folder: str, options: dict[str, Any]) -> Iterator[Any]:
    """Yield the sheets, height and headings of the sheet in `options`, or of the first one with a table; then its rows.

    Its name comes first among the sheets.
    """
    try:
        with Path(path).open("rb") as file, CalamineWorkbook.from_filelike(file) as book:
            yield from _parts(book, path, options["sheet"])
    except CalamineError:
        yield {"fault": "damaged"}


def _parts(book: CalamineWorkbook, path: str, sheet: str | None) -> Iterator[Any]:
    known = [each for each in book.sheets_metadata if each.typ is SheetTypeEnum.WorkSheet]
    names = [each.name for each in known]
    shown = [each.name for each in known if each.visible is SheetVisibleEnum.Visible]
    if sheet is not None and sheet not in names:
        listed = ", ".join(map(cut, names[:MOST_SHEETS]))
        raise Failure(f"{path} has no sheet {cut(sheet)!r}. Its sheets: {listed}.")
    tables = _tables(book, shown or names if sheet is None else [sheet])
    if not tables:
        raise Failure(f"{path} {EMPTY}")
    several = [each for each in tables if filled(each.headings[1]) > 1]
    found = max(several, key=_tracked, default=tables[0])
    line, cells = found.headings
    if _is_long(cells):
        raise Failure(f"{path}: row {line} has more than {LONGEST_ROW:,} characters.")
    named = [str(_plain(cell))[: LONGEST_HEADING + 1] for cell in cells[: MOST_COLUMNS + 1]]
    others = [each.name for each in tables if each is not found]
    sheets = [found.name, *others[:MOST_SHEETS]]
    yield {"size": found.height, "headings": named, "line": line, "sheets": sheets, "skipped": found.skipped}
    for number, row in found.rows:
        fault, note = TOO_LONG if _is_long(row) else None, REPEATED if repeats(row, cells) else None
        yield [number, [None] * len(row), [], fault, note] if fault or note else _packed(number, row)


def _tracked(table: Table) -> int:
    """Return how many columns of tracks and artists a sheet has, at most one of each. A cover sheet has none."""
    columns = {str(cell): headings.keys(str(cell)) for cell in table.headings[1][:MOST_COLUMNS]}
    return sum(any(headings.candidates(columns, each, headings.CATALOG[each], ())) for each in ("track", "artist"))


def _is_long(cells: Sequence[Any]) -> bool:
    return sum(len(cell) for cell in cells if isinstance(cell, str)) > LONGEST_ROW


def _tables(book: CalamineWorkbook, names: Sequence[str]) -> list[Table]:
    """Open the sheets that have a cell."""
    tables = (_table(book.get_sheet_by_name(name)) for name in names)
    return [table for table in tables if table is not None]


def _table(sheet: CalamineSheet) -> Table | None:
    """Find the headings of a sheet among its first rows."""
    rows = _rows(sheet)
    first = list(islice(rows, HEADINGS_WITHIN))
    if not first:
        return None
    place = headings_at([cells for _, cells in first])
    return Table(
        sheet.name, sheet.total_height, first[place], chain(first[place + 1 :], rows), [at for at, _ in first[:place]]
    )


def _rows(sheet: CalamineSheet) -> Iterator[Row]:
    """Yield the rows that are not empty."""
    timed = _timed(sheet)
    merged = _Merged(sheet)
    for at, row in enumerate(sheet.iter_rows()):
        cells: list[Any] = [*row]
        if any(cell != "" for cell in cells):
            merged.fill(at, cells)
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


def _packed(number: int, cells: Sequence[Any]) -> tuple[Any, ...]:
    plain = [_plain(cell) for cell in cells]
    special = packed(plain, range(len(plain)))
    return (number, plain, special) if special else (number, plain)


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
    # As in a CSV file, a time without seconds may be cut to the minute.
    return cell.isoformat(timespec="auto" if cell.second or cell.microsecond else "minutes")


PLAIN: dict[type, Callable[[Any], Any]] = {
    bool: lambda cell: str(cell).upper(),
    float: _number,
    time: _duration,
    datetime: _moment,
    date: date.isoformat,
}
