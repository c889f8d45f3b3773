"""Describe an export so that it can be verified later: its definitions, window, number of rows and checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from musicsvc.clock import isoformat
from musicsvc.server.shapes import insights
from musicsvc.store.insights.export_rows import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from musicsvc.reports.verification.checksums import Checksum
    from musicsvc.server.shapes.envelope import JSON
    from musicsvc.store.insights.scopes import Scope
    from musicsvc.store.plays.periods import Window

DEFINITIONS = {
    "date": "A day in UTC.",
    "track_id": "The track's id.",
    "track": "The track's name.",
    "album_id": "The album's id.",
    "album": "The album's name.",
    "artist_id": "The artist's id.",
    "artist": "The artist's name.",
    "artists": "The names of the artists, separated by '; '.",
    "plays": "Plays on this day.",
    "listeners": "Distinct listeners on this day.",
    "plays_total": "Plays of all time.",
    "plays_period": "Plays in the window.",
    "listeners_total": "Distinct listeners of all time.",
    "listeners_period": "Distinct listeners in the window.",
    "likes": "Likes given in the window that still stand.",
    "reposts": "Reposts given in the window that still stand.",
    "plays_change": "Growth of plays against the days in compared_with, in percent; null if those had none.",
    "listeners_change": "Growth of listeners against the days in compared_with, in percent; null if those had none.",
}
REPORT = "report"
REPORT_DEFINITIONS = {
    "summary": "Figures of everything in the report; a listener of several tracks counts once.",
    "top_tracks": "The tracks played most in the window.",
    "top_albums": "The albums played most in the window.",
    "top_artists": "The artists played most in the window.",
    "days": "Plays, listeners, likes and reposts of each day.",
    "totals": "Those of the whole window.",
}
REPORT_KEYS = ("section", "key")


def verification(type_: str, scope: Scope, window: Window, now: int, checksum: Checksum) -> JSON:
    """Return the description of an export. `checksum` has seen all of its rows."""
    before = window.compared_with
    known = REPORT_DEFINITIONS if type_ == REPORT else {name: DEFINITIONS[name] for name in COLUMNS[type_]}
    return {
        "type": type_,
        "generated_at": isoformat(now),
        "scope": {"user_id": scope.manager, "artist_id": scope.artist},
        "window": insights.period(window),
        "compared_with": before and {"from": isoformat(before.starts), "until": isoformat(before.ends)},
        "growth_basis": before and insights.growth_basis(window),
        "definitions": known,
        "row_count": checksum.count,
        "sha256": checksum.hexdigest(),
    }


def report_rows(report: Mapping[str, Any]) -> list[JSON]:
    """Return the figures of a report (its JSON) as rows, ordered by REPORT_KEYS, to verify it by."""
    return sorted(_report_rows(report), key=lambda row: (row["section"], row["key"]))


def _report_rows(report: Mapping[str, Any]) -> Iterator[JSON]:
    yield {"section": "summary", "key": "", **_flat(report["summary"])}
    for section in ("top_tracks", "top_albums", "top_artists"):
        for place, row in enumerate(report.get(section, ()), 1):
            yield {"section": section, "key": str(row["id"]), "place": place, **_flat(row)}
    if "charts" in report:
        yield {"section": "totals", "key": "", **report["charts"]["totals"]}
        for point in report["charts"]["points"]:
            yield {"section": "days", "key": point["date"], **point}


def _flat(figures: Mapping[str, Any]) -> JSON:
    """Return nested figures under names such as `plays.total`."""
    flat: JSON = {}
    for name, value in figures.items():
        flat |= {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
    return flat
