"""Describe an export so that it can be verified later: its definitions, window, number of rows and checksum."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from musicsvc.clock import isoformat
from musicsvc.reports.charts.dates import WEEKDAYS
from musicsvc.reports.report_tables import flat
from musicsvc.reports.verification import Checksum
from musicsvc.server.shapes import columns, insights
from musicsvc.server.shapes.envelope import JSON
from musicsvc.store.insights.listening import DEFAULT_DAYS
from musicsvc.store.insights.listening.releases import Compared
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays.periods import Window

REPORT = "report"
REPORT_DEFINITIONS = {
    "summary": "Totals of the report; a listener who played several tracks counts once.",
    "top_tracks": "The tracks played most in the window.",
    "top_albums": "The albums played most in the window; of one artist, those whose tracks by it were.",
    "top_artists": "The artists played most in the window.",
    "days": "Plays, listeners, likes and reposts of each day.",
    "totals": "Plays, listeners, likes and reposts of the whole window.",
    "listening": "Skips, completion, plays per listener, new and returning listeners of the window.",
    "hours": "Plays in the window by day of the week and hour, in UTC.",
    "milestones": "Days on which the most played tracks, albums and artists reached 100, 1,000, ... plays; best days.",
    "releases": "Plays of albums on each day since their release, and their distinct listeners up to that day.",
}
REPORT_KEYS = ("section", "key")
ADDED = {
    "first_play",
    "growth.first_play",
    "plays.of_artist.total",
    "plays.of_artist.period",
}  # to the rows of reports, since the first ones were written


def verification(type_: str, scope: Scope, window: Window, now: int, checksum: Checksum) -> JSON:
    """Return the description of an export. `checksum`: the checksum over all of its rows."""
    before = window.compared_with
    known = REPORT_DEFINITIONS
    if type_ != REPORT:
        known = {each.name: each.definition for each in columns.of_type(type_, scope)}
    return {
        "type": type_,
        "generated_at": isoformat(now),
        "scope": {
            "user_id": scope.manager,
            "artist_id": scope.artist,
            "album_id": scope.album,
            "track_id": scope.track,
        },
        "window": insights.period(window),
        "compared_with": before and {"from": isoformat(before.starts), "until": isoformat(before.ends)},
        "growth_basis": before and insights.growth_basis(window),
        "definitions": known,
        "row_count": checksum.count,
        "sha256": checksum.hexdigest(),
    }


def report_rows(report: Mapping[str, Any]) -> list[JSON]:
    """Return the figures of a report, given as JSON, as rows sorted by section and key, for its checksum."""
    return sorted(_report_rows(report), key=lambda row: (row["section"], row["key"]))


def _report_rows(report: Mapping[str, Any]) -> Iterator[JSON]:
    basis = {name: report[name] for name in ("growth_basis",) if name in report}
    yield {"section": "summary", "key": "", **flat(report["summary"]), **basis}
    for section in ("top_tracks", "top_albums", "top_artists"):
        for place, row in enumerate(report.get(section, ()), 1):
            yield {"section": section, "key": str(row["id"]), "place": place, **flat(row)}
    if "charts" in report:
        yield {"section": "totals", "key": "", **report["charts"]["totals"]}
        for point in report["charts"]["points"]:
            yield {"section": "days", "key": point["date"], **point}
    if "listening" in report:
        yield from _detailed_rows(report)


def _detailed_rows(report: Mapping[str, Any]) -> Iterator[JSON]:
    yield {"section": "listening", "key": "", **flat(report["listening"])}
    for day, plays in zip(WEEKDAYS, report["hours"]["hours"], strict=True):
        yield {"section": "hours", "key": day, **{f"{hour:02}:00": count for hour, count in enumerate(plays)}}
    for each in report["milestones"]:
        reached = {f"plays.{plays['count']}": plays["at"] for plays in each["plays"]}
        best = {f"best_day.{name}": value for name, value in (each["best_day"] or {}).items()}
        name = {"name": each["name"]}
        yield {"section": "milestones", "key": f"{each['kind']} {each['id']}", **name, **reached, **best}
    days = report["releases"]["days"]
    for place, each in enumerate(report["releases"]["releases"], 1):
        of = {"id": each["id"], "name": each["name"], "release_date": each["release_date"], "days": days}
        yield {"section": "releases", "key": f"{place:02}", **of}
        for point in each["points"]:
            yield {"section": "releases", "key": f"{place:02} day {point['day']:03}", **point}


def compared(rows: Sequence[JSON]) -> Compared:
    """Return the albums that a report compares, by id, and over how many days. `rows`: the report's figures as rows."""
    albums = [row for row in rows if row["section"] == "releases" and "release_date" in row]
    return Compared(tuple(row["id"] for row in albums), albums[0]["days"] if albums else DEFAULT_DAYS)
