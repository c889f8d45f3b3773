"""Write Excel workbooks (.xlsx) with typed cells. Texts are written as texts, so that none of them can be a formula."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from musicsvc import scratch
from musicsvc.reports.columns import Column, Kind
from musicsvc.reports.tables import PIECE, Table

ROWS_PER_SHEET = 1_048_575  # below the header row; the format has no more
ABOUT = "about"
WIDTHS = {"label": 24, "upc": 16, "isrc": 16} | dict.fromkeys(
    ("track", "album", "artist", "artists", "album_artists", "name", "figure"), 40
)  # characters
WIDTH_OF = {Kind.DATE: 12, Kind.TIME: 20, Kind.PERCENT: 24}  # of percent: a day in place of growth
WIDTH = 16
BUTTON = 3  # characters: the button of a filter beside a heading
FORMATS = {
    Kind.TEXT: "General",
    Kind.DATE: "yyyy-mm-dd",
    Kind.TIME: "yyyy-mm-dd hh:mm:ss",
    Kind.ID: "0",
    Kind.COUNT: "#,##0",
    Kind.NUMBER: "General",
    Kind.PERCENT: '0.0"%"',  # the value stays 12.3
}
FIRST_DAY = "1900-03-01"  # before it the format has a day too many, and programs differ in what they show


class TypedCell(NamedTuple):
    """A value of another kind than the other values in its column."""

    value: object
    kind: Kind


class Sheet(NamedTuple):
    """A table in a workbook. Cells are numbers, texts or None, or a `TypedCell`."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]


def xlsx(table: Table) -> Iterator[bytes]:
    """Yield a workbook in pieces: the rows, on several sheets if one is too small, and a sheet about the export."""
    return _pieces(table.head, lambda book: write_rows(book, table), table.folder)


def workbook(sheets: Sequence[Sheet], head: Mapping[str, Any], folder: Path | None = None) -> Iterator[bytes]:
    """Yield a workbook in pieces: these sheets, and a sheet about the export. All rows are held in memory.

    `folder`: where temporary files are written; None: in the system's folder.
    """

    def write(book: Any) -> None:
        formats = _formats(book)
        for each in sheets:
            sheet = _SheetWriter(book, each.name, each.columns, formats)
            for row in each.rows:
                sheet.add(row)
            sheet.end()

    return _pieces(head, write, folder)


def _pieces(head: Mapping[str, Any], write: Callable[[Any], None], parent: Path | None) -> Iterator[bytes]:
    import xlsxwriter  # noqa: PLC0415 - loaded when a file is written
    from xlsxwriter.exceptions import FileCreateError  # noqa: PLC0415 - the same

    with scratch.folder(parent) as folder:
        target = folder / "rows.xlsx"
        try:
            with xlsxwriter.Workbook(target, {"constant_memory": True, "tmpdir": str(folder)}) as book:
                book.set_properties({"created": datetime.fromisoformat(str(head["generated_at"]))})
                write(book)
                _write_about(book, head)
        except FileCreateError as error:
            raise error.args[0] from None  # the OSError that it wraps
        with target.open("rb") as written:
            while piece := written.read(PIECE):
                yield piece


def write_rows(book: Any, table: Table, rows_per_sheet: int = ROWS_PER_SHEET) -> None:
    """Write the rows to sheets named after the type of the rows: `tracks`, `tracks 2` and so on."""
    title, formats = str(table.head["type"]), _formats(book)
    sheet = _SheetWriter(book, title, table.columns, formats)
    for number, row in enumerate(table.rows):
        if number and number % rows_per_sheet == 0:
            sheet.end()
            sheet = _SheetWriter(book, f"{title} {number // rows_per_sheet + 1}", table.columns, formats)
        sheet.add(row)
    sheet.end()


def _formats(book: Any) -> dict[Kind, Any]:
    return {kind: book.add_format({"num_format": text}) for kind, text in FORMATS.items()}


class _SheetWriter:
    """Writes the rows of a sheet below its headings, which stay in view and have filters."""

    def __init__(self, book: Any, title: str, columns: Sequence[Column], formats: Mapping[Kind, Any]) -> None:
        self._sheet = book.add_worksheet(title)
        self._columns = columns
        self._formats = formats
        self._rows = 0
        bold, right = book.add_format({"bold": True}), book.add_format({"bold": True, "align": "right"})
        for place, column in enumerate(columns):
            width = WIDTHS.get(column.name, WIDTH_OF.get(column.kind, WIDTH))
            self._sheet.set_column(place, place, max(width, len(column.heading) + BUTTON))
            self._sheet.write_string(0, place, column.heading, bold if column.kind is Kind.TEXT else right)
        self._sheet.freeze_panes(1, 0)

    def add(self, row: Sequence[object]) -> None:
        self._rows += 1
        for place, value in enumerate(row):
            kind = self._columns[place].kind
            self._write(place, *(value if isinstance(value, TypedCell) else (value, kind)))

    def _write(self, place: int, value: object, kind: Kind) -> None:
        """Write a number, a text or, in columns of dates or times, a date or time in UTC. Skip None."""
        at, style = (self._rows, place), self._formats[kind]
        if isinstance(value, str) and kind in {Kind.DATE, Kind.TIME} and value >= FIRST_DAY:
            self._sheet.write_datetime(*at, datetime.fromisoformat(value).replace(tzinfo=None), style)
        elif isinstance(value, str):
            self._sheet.write_string(*at, value)
        elif value is not None:
            self._sheet.write_number(*at, value, style)

    def end(self) -> None:
        self._sheet.autofilter(0, 0, self._rows, len(self._columns) - 1)


def _write_about(book: Any, head: Mapping[str, Any]) -> None:
    """Add a sheet with the type and the period of the rows, the time of the export, and any unusual basis of growth."""
    sheet = book.add_worksheet(ABOUT)
    sheet.set_column(0, 1, 28)
    period = {f"period {key}": value for key, value in head["period"].items()}
    lines = {"type": head["type"], **period, "generated at": head["generated_at"]}
    if "growth_basis" in head:
        lines["growth basis"] = head["growth_basis"]
    for line, (key, value) in enumerate(lines.items()):
        sheet.write_string(line, 0, key)
        sheet.write_string(line, 1, str(value))
