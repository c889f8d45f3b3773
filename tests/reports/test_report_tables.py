"""A report as a workbook has a typed sheet for each table, and as CSV a line for each day."""

import calendar
import csv
import io
from datetime import datetime
from typing import Any

import openpyxl

from musicsvc.reports import report_tables
from musicsvc.server.shapes import columns, verification

POINT = {"date": "2026-03-01", "plays": 9, "listeners": 4, "likes": 1, "reposts": 2}
ROW = {
    "id": 7,
    "name": "=1+1",
    "plays": {"total": 90, "period": 9},
    "listeners": {"unique": 4},
    "plays_change": -3.5,
    "first_play": "2026-03-01",
}
CODES = {"isrc": "DEZ992400001", "upc": None, "album": None, "label": None, "release_date": "1899-01-01"}
MILESTONES = {
    "plays": [{"count": 100, "at": "2026-02-03T04:05:06.000000Z"}],
    "best_day": {"date": "2026-02-04", "plays": 31},
}
RANKED = ["ID", "Name", "Plays of all time", "Plays", "Listeners", "Growth of plays"]
REPORT: dict[str, Any] = {
    "period": {"name": "7-days", "start": "2026-02-23", "end": "2026-03-01"},
    "generated_at": "2026-03-01T12:34:56.000000Z",
    "summary": {"plays": {"total": 90, "period": 9}, "growth": {"plays_change": 12.5}, "tracks_count": 3},
    "charts": {"points": [POINT]},
    "top_tracks": [ROW | CODES],
    "top_albums": [],
    "top_artists": [ROW | {"id": 8, "plays_change": None, "first_play": None}],
    "listening": {"skips": 5, "completion": {"mean": 51.7, "median": None}},
    "hours": {"hours": [[day * 24 + hour for hour in range(24)] for day in range(7)]},
    "milestones": [
        {"kind": "track", "id": 7, "name": "Rag", **MILESTONES},
        {"kind": "album", "id": 3, "name": "Rags", "plays": [], "best_day": None},
    ],
    "releases": {
        "days": 28,
        "releases": [
            {"id": 3, "name": "Rags", "release_date": "2026-02-28", "points": [{"day": 0, "plays": 6, "listeners": 2}]},
            {"id": 4, "name": "Old", "release_date": "1899-01-01", "points": [{"day": 0, "plays": 0, "listeners": 0}]},
        ],
    },
}


def test_a_workbook_has_a_sheet_for_each_table() -> None:
    book = openpyxl.load_workbook(io.BytesIO(b"".join(report_tables.workbook(REPORT, columns.OF_REPORT))))
    sheets = {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}

    assert list(sheets) == [
        *("summary", "days", "top tracks", "top albums", "top artists"),
        *("listening", "hours", "milestones", "best days", "releases", "about"),
    ]
    day = datetime(2026, 3, 1)  # noqa: DTZ001 - a date cell has no time zone
    assert sheets["summary"] == [
        ["Figure", "Value"],
        *(["Plays of all time", 90], ["Plays", 9], ["Growth of plays", 12.5], ["Tracks", 3]),
    ]
    assert sheets["days"] == [["Date", "Plays", "Listeners", "Likes", "Reposts"], [day, 9, 4, 1, 2]]
    tracks, albums = ["ISRC", "UPC", "Album", "Label", "Release date"], ["UPC", "Label", "Release date"]
    of_track = ["DEZ992400001", None, None, None, "1899-01-01"]
    assert sheets["top tracks"] == [
        [*RANKED, *tracks, "First play"],
        [7, "=1+1", 90, 9, 4, -3.5, *of_track, day],
    ]
    assert sheets["top albums"] == [[*RANKED, *albums, "First play"]]
    assert sheets["top artists"] == [[*RANKED, "First play"], [8, "=1+1", 90, 9, 4, None, None]]
    skips = [["Skips", 5], ["Completion", 51.7], ["Median completion", None]]
    assert sheets["listening"] == [["Figure", "Value"], *skips]
    assert sheets["hours"][0] == ["UTC", *(f"{hour:02}:00" for hour in range(24))]
    assert [row[1:] for row in sheets["hours"][1:]] == REPORT["hours"]["hours"]
    assert [row[0] for row in sheets["hours"][1:]] == list(calendar.day_name)
    reached = datetime(2026, 2, 3, 4, 5, 6)  # noqa: DTZ001 - the same
    assert sheets["milestones"] == [["Kind", "ID", "Name", "Plays", "Reached at"], ["track", 7, "Rag", 100, reached]]
    best = datetime(2026, 2, 4)  # noqa: DTZ001 - the same
    assert sheets["best days"] == [["Kind", "ID", "Name", "Date", "Plays"], ["track", 7, "Rag", best, 31]]
    released = datetime(2026, 2, 28)  # noqa: DTZ001 - the same
    heading = ["Album ID", "Album", "Release date", "Day since release", "Plays", "Listeners until then"]
    assert sheets["releases"] == [heading, [3, "Rags", released, 0, 6, 2], [4, "Old", "1899-01-01", 0, 0, 0]]
    shown = [book["summary"]["B4"], book["listening"]["B2"], book["listening"]["B3"]]
    assert [cell.number_format for cell in shown] == ['0.0"%"', "#,##0", '0.0"%"']
    assert book["days"].auto_filter.ref == "A1:E2"


def test_a_csv_file_has_a_line_for_each_day() -> None:
    days = [POINT, POINT | {"date": "2026-03-02", "plays": 0}]
    text = b"".join(report_tables.csv(REPORT | {"charts": {"points": days}})).decode()

    assert list(csv.reader(io.StringIO(text))) == [
        ["date", "plays", "listeners", "likes", "reposts"],
        ["2026-03-01", "9", "4", "1", "2"],
        ["2026-03-02", "0", "4", "1", "2"],
    ]


def test_each_figure_of_a_report_is_in_a_row() -> None:
    report = REPORT | {"charts": {"points": [POINT], "totals": {"plays": 9}}}
    rows = {(str(row["section"]), str(row["key"])): [*row.items()][2:] for row in verification.report_rows(report)}

    assert dict(rows["listening", ""]) == {"skips": 5, "completion.mean": 51.7, "completion.median": None}
    assert [plays for _, plays in rows["hours", "Sunday"]] == REPORT["hours"]["hours"][6]
    best = {f"best_day.{name}": value for name, value in MILESTONES["best_day"].items()}  # type: ignore[attr-defined]
    assert dict(rows["milestones", "track 7"]) == {"name": "Rag", "plays.100": "2026-02-03T04:05:06.000000Z"} | best
    assert dict(rows["releases", "02 day 000"]) == REPORT["releases"]["releases"][1]["points"][0]
    assert (dict(rows["days", "2026-03-01"]), dict(rows["totals", ""])) == (POINT, {"plays": 9})
