"""Checksums over rows, reading files back, and comparing rows."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.errors import Failure
from musicsvc.reports import columns, tables, verification
from musicsvc.reports.columns import Column, Kind
from musicsvc.reports.formats import FORMATS
from musicsvc.reports.tables import Table
from musicsvc.reports.verification import Difference

COLUMNS = tuple(columns.COLUMNS[name] for name in ("date", "track_id", "track", "plays", "label", "isrc"))
COLUMNS = (*COLUMNS, Column("plays_change", "Growth", Kind.PERCENT))
NAMES = [each.name for each in COLUMNS]
HEAD = {"type": "plays", "period": {"name": "7-days"}, "generated_at": "2026-03-01T12:34:56.000000Z"}
ROWS: list[tuple[Any, ...]] = [
    ("2026-02-28", 7, "Étude\r\nin a_x0041_ \x01", 41, "=A1", None, -3.5),
    ("2026-03-01", 6, "=1+1", 0, None, "DEZ992400001", None),
    ("2026-03-01", 8, ' "夜", ', 2, "", "DEZ992400002", 12.0),
]


def written(path: Path, form: str) -> Path:
    write = FORMATS[form].write_table
    assert write is not None
    path.write_bytes(b"".join(write(Table(COLUMNS, ROWS, HEAD))))
    return path


def named(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


@pytest.mark.parametrize("form", verification.READABLE)
def test_a_file_is_read_as_the_rows_that_were_written(form: str, tmp_path: Path) -> None:
    expected = [tables.as_read_from_csv(row) for row in named(ROWS)] if form == "csv" else named(ROWS)
    assert list(verification.rows(written(tmp_path / "a", form), form, COLUMNS)) == expected


@pytest.mark.parametrize("form", verification.READABLE)
@pytest.mark.parametrize("content", [b"", b"PK", b"{}", b'"date","plays"\r\n', b'"date",\xff'])
def test_a_file_without_the_rows_of_an_export_is_a_failure(form: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(content)
    with pytest.raises(Failure, match=r"a .*(does not have the rows of an export|is not a JSON file)"):
        list(verification.rows(file, form, COLUMNS))


@given(st.lists(st.tuples(st.integers(0, 2**53), st.text(st.characters(exclude_categories=["Cs"])))))
def test_the_checksum_is_over_the_rows_as_canonical_json(rows: list[tuple[int, str]]) -> None:
    objects = [{"plays": number, "album": text, "change": -0.5, "none": None} for number, text in rows]
    text = json.dumps(objects, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    checksum = verification.of_rows(objects)
    assert checksum.hexdigest() == hashlib.sha256(text.encode()).hexdigest()
    assert checksum.count == len(rows)


def test_whole_numbers_have_no_fraction_in_canonical_json() -> None:
    assert verification.canonical({"b": 12.0, "a": -0.5, "c": 100}) == b'{"a":-0.5,"b":12,"c":100}'


def test_rows_pass_the_checksum_unchanged() -> None:
    checksum = verification.Checksum()
    assert list(checksum.watch(NAMES, ROWS)) == ROWS
    assert checksum.hexdigest() == verification.of_rows(named(ROWS)).hexdigest()


def test_differences_name_the_row_the_column_and_both_values() -> None:
    file: list[dict[str, Any]] = [
        {"id": 1, "plays": 1},
        {"id": 3, "plays": 3},
        {"id": 4, "plays": None},
        {"id": 9, "plays": 9},
    ]
    now: list[dict[str, Any]] = [
        {"id": 2, "plays": 2},
        {"id": 3, "plays": 5},
        {"id": 4, "plays": None},
        {"id": 10, "plays": 1},
    ]
    assert list(verification.differences(file, now, ("id",))) == [
        Difference("1", "row", "present", "missing"),
        Difference("2", "row", "missing", "present"),
        Difference("3", "plays", 3, 5),
        Difference("9", "row", "present", "missing"),
        Difference("10", "row", "missing", "present"),
    ]
    assert list(verification.differences(named(ROWS), named(ROWS), ("date", "track_id"))) == []


def test_a_file_in_another_order_is_a_failure() -> None:
    with pytest.raises(Failure, match=r"2026-03-01 6 comes too late"):
        list(verification.differences(named([*ROWS[:2], *ROWS[1:]]), named(ROWS), ("date", "track_id")))
    with pytest.raises(Failure, match=r"not in the order of the export: 2026-02-28 7 comes too late"):
        list(verification.differences(named(ROWS[1:] + ROWS[:1]), named(ROWS), ("date", "track_id")))
