"""Write the figures of a report as a workbook with a sheet for each table, or its days as a CSV file."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from musicsvc.reports import tables, xlsx
from musicsvc.reports.charts.dates import WEEKDAYS
from musicsvc.reports.columns import COLUMNS, Column, Kind
from musicsvc.reports.tables import JSON
from musicsvc.reports.xlsx import Sheet, TypedCell

HEAD = ("period", "generated_at", "growth_basis")
FIGURE = (Column("figure", "Figure", Kind.TEXT), Column("value", "Value", Kind.NUMBER))
DAY = tuple(COLUMNS[name] for name in ("date", "plays", "listeners", "likes", "reposts"))
TOPS = ("top_tracks", "top_albums", "top_artists")
RANKED = ("plays.total", "plays.period", "listeners.unique", "growth.plays_change")
ID, NAME = Column("id", "ID", Kind.ID), Column("name", "Name", Kind.TEXT)
SUBJECT = (Column("kind", "Kind", Kind.TEXT), ID, NAME)
HOURS = tuple(Column(f"{hour:02}:00", f"{hour:02}:00", Kind.COUNT) for hour in range(24))
RELEASE = (
    *(COLUMNS[name] for name in ("album_id", "album", "release_date")),
    Column("day", "Day since release", Kind.COUNT),
    COLUMNS["plays"],
    Column("listeners", "Listeners until then", Kind.COUNT),
)


def csv(report: JSON) -> Iterator[bytes]:
    """Yield a CSV file with a line for each day of a report, and a column for each figure. `report`: as JSON."""
    return tables.csv(tables.Table(DAY, _days(report), {}))


class FigureColumns(NamedTuple):
    """The columns of figures, by their place in JSON, and the further columns of each ranking in TOPS."""

    figures: Mapping[str, Column]
    of_tops: Mapping[str, Sequence[Column]]


def workbook(report: JSON, columns: FigureColumns, folder: Path | None = None) -> Iterator[bytes]:
    """Yield a workbook in pieces, with a sheet for each table of the report. `report`: the report as JSON.

    `folder`: where temporary files are written; None: in the system's folder.
    """
    head = {"type": "report"} | {name: report[name] for name in HEAD if name in report}
    return xlsx.workbook(list(_sheets(report, columns)), head, folder)


def flat(figures: Mapping[str, Any]) -> JSON:
    """Return the figures without nesting: `{"plays": {"total": 7}}` becomes `{"plays.total": 7}`."""
    found: JSON = {}
    for name, value in figures.items():
        found |= (
            {f"{name}.{key}": part for key, part in flat(value).items()} if isinstance(value, dict) else {name: value}
        )
    return found


def _sheets(report: JSON, columns: FigureColumns) -> Iterator[Sheet]:
    yield _figures("summary", report["summary"], columns)
    yield Sheet("days", DAY, _days(report))
    for name in TOPS:
        yield _top(name, report[name], columns)
    yield _figures("listening", report["listening"], columns)
    hours = zip(WEEKDAYS, report["hours"]["hours"], strict=True)
    yield Sheet("hours", (Column("day", "UTC", Kind.TEXT), *HOURS), [(day, *plays) for day, plays in hours])
    of, best = report["milestones"], [each for each in report["milestones"] if each["best_day"]]
    yield Sheet(
        "milestones",
        (*SUBJECT, Column("plays", "Plays", Kind.COUNT), Column("at", "Reached at", Kind.TIME)),
        [(*_subject(each), reached["count"], reached["at"]) for each in of for reached in each["plays"]],
    )
    yield Sheet(
        "best days",
        (*SUBJECT, COLUMNS["date"], COLUMNS["plays"]),
        [(*_subject(each), *each["best_day"].values()) for each in best],
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


def _days(report: JSON) -> list[list[object]]:
    return [[point[each.name] for each in DAY] for point in report["charts"]["points"]]


def _figures(title: str, found: JSON, columns: FigureColumns) -> Sheet:
    described = ((columns.figures.get(path) or _count(path), value) for path, value in flat(found).items())
    return Sheet(title, FIGURE, [(each.heading, TypedCell(value, each.kind)) for each, value in described])


def _count(name: str) -> Column:
    """Return the column of a number of tracks, albums or artists."""
    return Column(name, name.removesuffix("_count").capitalize(), Kind.COUNT)


def _top(title: str, rows: list[JSON], columns: FigureColumns) -> Sheet:
    """Return a sheet with the most played tracks, albums or artists."""
    further = columns.of_tops[title]
    if rows and "of_artist" in rows[0]["plays"]:
        further = [*further, COLUMNS["plays_of_artist_period"]]
        rows = [row | {"plays_of_artist_period": row["plays"]["of_artist"]["period"]} for row in rows]
    all_columns = (ID, NAME, *(columns.figures[path] for path in RANKED), *further)
    shaped = [(*_ranked(row), *(row[each.name] for each in further)) for row in rows]
    return Sheet(title.replace("_", " "), all_columns, shaped)


def _ranked(row: JSON) -> tuple[object, ...]:
    plays, listeners = row["plays"], row["listeners"]
    return row["id"], row["name"], plays["total"], plays["period"], listeners["unique"], row["plays_change"]


def _subject(each: JSON) -> list[object]:
    return [each[column.name] for column in SUBJECT]
