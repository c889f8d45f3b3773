"""Write the figures of a report as a workbook with a sheet for each table, or as a CSV file with a line per figure."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from musicsvc.reports import tables, xlsx
from musicsvc.reports.charts.dates import WEEKDAYS
from musicsvc.reports.tables import JSON
from musicsvc.reports.xlsx import Sheet

HEAD = ("period", "generated_at", "growth_basis")
FIGURE = ("figure", "value")
DAY = ("date", "plays", "listeners", "likes", "reposts")
TOPS = ("top_tracks", "top_albums", "top_artists")
RANKED = ("id", "name", "plays_total", "plays_period", "listeners_period", "plays_change", "first_play")
HOURS = tuple(f"{hour:02}:00" for hour in range(24))
SUBJECT = ("kind", "id", "name")
RELEASE = ("album_id", "album", "release_date", "day", "plays", "listeners")


def csv(rows: Sequence[Mapping[str, object]]) -> Iterator[bytes]:
    """Yield a CSV file with a line for each figure of a report. Each of `rows` has a `section`, a `key` and figures."""
    lines = (
        (row["section"], row["key"], figure, value)
        for row in rows
        for figure, value in row.items()
        if figure not in {"section", "key"}
    )
    return tables.csv(tables.Table(("section", "key", *FIGURE), lines, {}))


def workbook(report: JSON, folder: Path | None = None) -> Iterator[bytes]:
    """Yield a workbook in pieces, with a sheet for each table of the report. `report`: the report as JSON.

    `folder`: where temporary files are written; None: in the system's folder.
    """
    head = {"type": "report"} | {name: report[name] for name in HEAD if name in report}
    return xlsx.workbook(list(_sheets(report)), head, folder)


def flat(figures: Mapping[str, Any]) -> JSON:
    """Return the figures without nesting: `{"plays": {"total": 7}}` becomes `{"plays.total": 7}`."""
    found: JSON = {}
    for name, value in figures.items():
        found |= {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _sheets(report: JSON) -> Iterator[Sheet]:
    yield Sheet("summary", FIGURE, list(flat(report["summary"]).items()))
    yield Sheet("days", DAY, [[point[name] for name in DAY] for point in report["charts"]["points"]])
    for name in TOPS:
        yield Sheet(name, RANKED, [_ranked(row) for row in report[name]])
    yield Sheet("listening", FIGURE, list(flat(report["listening"]).items()))
    hours = zip(WEEKDAYS, report["hours"]["hours"], strict=True)
    yield Sheet("hours", ("UTC", *HOURS), [(day, *plays) for day, plays in hours])
    of, best = report["milestones"], [each for each in report["milestones"] if each["best_day"]]
    yield Sheet(
        "milestones",
        (*SUBJECT, "plays", "at"),
        [(*_subject(each), reached["count"], reached["at"]) for each in of for reached in each["plays"]],
    )
    yield Sheet(
        "best days", (*SUBJECT, "date", "plays"), [(*_subject(each), *each["best_day"].values()) for each in best]
    )
    yield Sheet(
        "releases",
        RELEASE,
        [
            (each["id"], each["name"], each["release_date"], *point.values())
            for each in report["releases"]["releases"]
            for point in each["points"]
        ],
    )


def _ranked(row: JSON) -> Sequence[object]:
    plays, listeners = row["plays"], row["listeners"]
    counts = plays["total"], plays["period"], listeners["unique"]
    return row["id"], row["name"], *counts, row["plays_change"], row["first_play"]


def _subject(each: JSON) -> Sequence[object]:
    return [each[name] for name in SUBJECT]
