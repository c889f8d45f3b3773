"""CSV and JSON files hold what was put into them, and no cell is a formula."""

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.reports import tables
from musicsvc.reports.columns import Column, Kind
from musicsvc.reports.tables import Table

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
CELLS = st.one_of(st.none(), st.integers(-(2**53), 2**53), st.floats(-1e6, 1e6).map(lambda each: round(each, 1)), TEXTS)
LINE = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def columns(*names: str) -> list[Column]:
    return [Column(name, name, Kind.TEXT) for name in names]


def read(document: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(document.decode(), newline=""), strict=True))


@given(st.lists(st.tuples(CELLS, CELLS, CELLS)))
def test_a_csv_file_reads_as_it_was_written_but_for_the_signs_that_defuse(rows: list[tuple[object, ...]]) -> None:
    header, *lines = read(b"".join(tables.csv(Table(columns("a", "b", "c"), rows, {}))))

    assert header == ["a", "b", "c"]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        for shown, value in zip(line, row, strict=True):
            if isinstance(value, str):
                assert shown.replace("'", "") == value.replace("'", "")
                assert not any(part.startswith(FORMULA) for part in LINE.split(shown))
            else:
                assert shown == ("" if value is None else str(value))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Maple Leaf Rag", "Maple Leaf Rag"),
        ("=1+1", "'=1+1"),
        ("-1", "'-1"),
        ("a-b = c", "a-b = c"),
        ("x;=1", "x;=1"),
        ("@home", "'@home"),
        ("\tx", "'\tx"),
        ("a\n=1", "a\n'=1"),
        ("a\r\n+1", "a\r\n'+1"),
        ("\rx", "'\rx"),
        ('=A1,"x"', '\'=A1,""x""'),
        ("\uff1d1", "'\uff1d1"),
        ("", ""),
    ],
)
def test_a_text_is_quoted_and_defused_where_a_line_of_it_begins_like_a_formula(text: str, shown: str) -> None:
    assert tables.cell(text) == f'"{shown}"'


@pytest.mark.parametrize(("number", "shown"), [(-3.1, "-3.1"), (-5, "-5"), (0.0, "0.0"), (None, "")])
def test_a_number_is_neither_quoted_nor_defused(number: float | None, shown: str) -> None:
    assert tables.cell(number) == shown


@given(st.lists(st.tuples(st.integers(0, 9), TEXTS)))
def test_a_json_file_holds_every_row_under_its_columns(rows: list[tuple[int, str]]) -> None:
    found = json.loads(b"".join(tables.json(Table(columns("id", "name"), rows, {"type": "x"}))))

    assert found == {
        "success": True,
        "data": {"type": "x", "rows": [{"id": number, "name": text} for number, text in rows], "verification": {}},
    }


def test_pieces_are_neither_small_nor_large() -> None:
    pieces = list(tables.csv(Table(columns("a"), (("x" * 100,) for _ in range(10_000)), {})))
    assert all(tables.PIECE <= len(piece) < 2 * tables.PIECE for piece in pieces[:-1])
