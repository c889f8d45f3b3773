"""Write Excel workbooks (.xlsx) with typed cells. Texts are written as texts, so that none of them can be a formula."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from musicsvc.reports import scratch
from musicsvc.reports.tables import PIECE, Table

ROWS_PER_SHEET = 1_048_575  # below the header row; the format has no more
ABOUT = "about"
WIDTHS = {"date": 12, "first_play": 12, "at": 20} | dict.fromkeys(
    ("track", "album", "artist", "artists", "name", "figure"), 40
)  # characters
WIDTH = 16
DATE, TIME, CHANGE, NUMBER = "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "0.0", "0"
STYLES = {"date": DATE, "first_play": DATE, "release_date": DATE, "at": TIME, "value": "General"}  # by column
FIRST_YEAR = 1900  # of dates in the format


class Sheet(NamedTuple):
    """A table in a workbook. Cells are numbers, texts, dates as text (in columns of DATES) or None."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def xlsx(table: Table) -> Iterator[bytes]:
    """Yield a workbook in pieces: the rows, on several sheets if one is too small, and a sheet about the export."""
    return _pieces(table.head, lambda book: write_rows(book, table), table.folder)


def workbook(sheets: Sequence[Sheet], head: Mapping[str, Any], folder: Path | None = None) -> Iterator[bytes]:
    """Yield a workbook in pieces: these sheets, and a sheet about the export. All rows are held in memory.

    `folder`: where temporary files are written; None: in the system's folder.
    """

    def write(book: Any) -> None:
        for each in sheets:
            formats = _formats(book, each.columns)
            sheet = _add_sheet(book, each.name, each.columns)
            for number, row in enumerate(each.rows, 1):
                for place, value in enumerate(row):
                    _write_cell(sheet, (number, place), value, formats[place])

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
    title = str(table.head["type"])
    formats = _formats(book, table.columns)
    sheet = _add_sheet(book, title, table.columns)
    for number, row in enumerate(table.rows):
        if number and number % rows_per_sheet == 0:
            sheet = _add_sheet(book, f"{title} {number // rows_per_sheet + 1}", table.columns)
        for place, value in enumerate(row):
            _write_cell(sheet, (number % rows_per_sheet + 1, place), value, formats[place])


def _formats(book: Any, columns: Sequence[str]) -> list[Any]:
    return [book.add_format({"num_format": _number_format(column)}) for column in columns]


def _add_sheet(book: Any, title: str, columns: Sequence[str]) -> Any:
    """Return a new sheet, with the names of the columns in a first row that stays in view."""
    sheet = book.add_worksheet(title)
    bold = book.add_format({"bold": True})
    for place, column in enumerate(columns):
        sheet.set_column(place, place, WIDTHS.get(column, WIDTH))
        sheet.write_string(0, place, column, bold)
    sheet.freeze_panes(1, 0)
    return sheet


def _number_format(column: str) -> str:
    return STYLES.get(column, CHANGE if column.endswith("_change") else NUMBER)


def _write_cell(sheet: Any, at: tuple[int, int], value: object, style: Any) -> None:
    """Write a number, a text or, in columns with a date or time format, a date or time in UTC. Skip None."""
    if isinstance(value, str) and style.num_format in {DATE, TIME} and int(value[:4]) >= FIRST_YEAR:
        sheet.write_datetime(*at, datetime.fromisoformat(value).replace(tzinfo=None), style)
    elif isinstance(value, str):
        sheet.write_string(*at, value)
    elif value is not None:
        sheet.write_number(*at, value, style)


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
