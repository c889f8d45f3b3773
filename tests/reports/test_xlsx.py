"""Excel workbooks: typed cells, no formulas, and further sheets where one is full."""

import io
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from zipfile import ZipFile

import openpyxl
import pytest
import xlsxwriter

from musicsvc.reports import columns, xlsx
from musicsvc.reports.columns import Column, Kind
from musicsvc.reports.tables import Table

GROWTH = Column("plays_change", "Growth of plays", Kind.PERCENT)
COLUMNS = (*(columns.COLUMNS[name] for name in ("date", "track_id", "track", "plays")), GROWTH)
HEAD = {
    "type": "plays",
    "period": {"name": "7-days", "start": "2026-02-23", "end": "2026-03-01"},
    "generated_at": "2026-03-01T12:34:56.000000Z",
}
FORMULAS = ["=1+1", "+1", "-1", "@x", '=HYPERLINK("http://a.test")', "http://a.test", "{=A1}", "a\x01b", "_x0041_"]


def table(rows: Sequence[Sequence[object]]) -> Table:
    return Table(COLUMNS, rows, HEAD)


def book(content: bytes) -> Any:
    return openpyxl.load_workbook(io.BytesIO(content))


def written(rows: Sequence[Sequence[object]]) -> bytes:
    return b"".join(xlsx.xlsx(table(rows)))


def test_cells_have_the_types_of_their_columns() -> None:
    sheet = book(written([("2026-03-01", 7, "Étude", 4100, -3.5), ("2026-03-02", 8, "夜", 0, None)]))["plays"]

    assert [cell.value for cell in sheet[1]] == ["Date", "Track ID", "Track", "Plays", "Growth of plays"]
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", "A1:E3")
    assert [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2)] == [
        [datetime(2026, 3, 1), 7, "Étude", 4100, -3.5],  # noqa: DTZ001 - a date cell has no time zone
        [datetime(2026, 3, 2), 8, "夜", 0, None],  # noqa: DTZ001 - the same
    ]
    assert [cell.number_format for cell in sheet[2]] == ["yyyy-mm-dd", "0", "General", "#,##0", '0.0"%"']


def test_columns_are_as_wide_as_their_texts() -> None:
    of = {"date": 12, "release_date": 15, "label": 24, "plays": 16} | dict.fromkeys(
        ("track", "album", "artist", "artists"), 40
    )
    heading = Column("long", "A heading with more characters", Kind.COUNT)  # and the button of its filter
    described = [*(columns.COLUMNS[name] for name in of), Column("at", "At", Kind.TIME), heading]
    content = b"".join(xlsx.workbook([xlsx.Sheet("top", described, [])], HEAD))
    padding = 1  # the format adds 5 pixels
    assert widths(content, 1) == [width + padding for width in (*of.values(), 20, 33)]
    assert widths(content, 2) == [28 + padding] * 2


def widths(content: bytes, number: int) -> list[int]:
    """Return the widths of the columns of a sheet. Neighbours that are equally wide are stored together."""
    with ZipFile(io.BytesIO(content)) as parts:
        text = parts.read(f"xl/worksheets/sheet{number}.xml").decode()
    found = re.findall(r'<col min="([0-9]+)" max="([0-9]+)" width="([0-9.]+)"', text)
    return [round(float(width)) for first, last, width in found for _ in range(int(first), int(last) + 1)]


def test_a_date_that_not_all_programs_read_alike_is_a_text() -> None:
    days = ("1899-12-31", "1900-01-01", "1900-02-28", "1900-03-01")
    cells = book(written([(day, 1, "x", 1, None) for day in days]))["plays"]["A"][1:]
    assert [cell.number_format for cell in cells] == ["General", "General", "General", "yyyy-mm-dd"]
    assert [str(cell.value)[:10] for cell in cells] == [*days]


def test_no_text_becomes_a_formula_or_a_link() -> None:
    content = written([("2026-03-01", number, text, 1, None) for number, text in enumerate(FORMULAS)])

    cells = book(content)["plays"]["C"][1:]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [cell.hyperlink for cell in cells] == [None] * len(cells)
    assert [cell.value for cell in cells[:7]] == FORMULAS[:7]
    with ZipFile(io.BytesIO(content)) as parts:
        text = parts.read("xl/worksheets/sheet1.xml")
    assert b"<f>" not in text
    assert b"a_x0001_b" in text  # a control character, as the format writes it
    assert b"_x005F_x0041_" in text


def test_a_second_sheet_says_what_the_rows_are() -> None:
    whole = book(written([]))
    assert whole.sheetnames == ["plays", "about"]
    assert [[cell.value for cell in row] for row in whole["about"]] == [
        ["type", "plays"],
        ["period name", "7-days"],
        ["period start", "2026-02-23"],
        ["period end", "2026-03-01"],
        ["generated at", "2026-03-01T12:34:56.000000Z"],
    ]


def test_rows_go_on_in_another_sheet_where_one_is_full() -> None:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"constant_memory": True}) as target:
        xlsx.write_rows(target, table([("2026-03-01", number, "x", number, None) for number in range(7)]), 3)
    whole = openpyxl.load_workbook(file)
    assert whole.sheetnames == ["plays", "plays 2", "plays 3"]
    assert [[cell.value for cell in sheet["B"][1:]] for sheet in whole] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [sheet["B1"].value for sheet in whole] == ["Track ID"] * 3
    assert [sheet.auto_filter.ref for sheet in whole] == ["A1:E4", "A1:E4", "A1:E2"]


def test_a_sheet_has_as_many_rows_as_the_format_allows() -> None:
    assert xlsx.ROWS_PER_SHEET + 1 == 1 << 20


def test_the_same_rows_give_the_same_bytes() -> None:
    rows = [("2026-03-01", 7, "Étude", 41, -3.5)]
    assert written(rows) == written(rows)


def test_an_error_while_rows_are_read_ends_the_file() -> None:
    def failing() -> Iterator[Sequence[object]]:
        yield ("2026-03-01", 7, "Étude", 41, -3.5)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        list(xlsx.xlsx(Table(COLUMNS, failing(), HEAD)))
