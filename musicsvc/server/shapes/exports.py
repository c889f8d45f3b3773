"""Exports as they are answered (docs/exports.md); the command line writes the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.clock import isoformat
from musicsvc.server.shapes import insights
from musicsvc.store.plays.periods import to_date

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import JSON
    from musicsvc.store.insights.export_rows import Row
    from musicsvc.store.insights.overview import Overview
    from musicsvc.store.plays.periods import Window

FORMATS = (
    ("csv", "CSV", "A table for spreadsheets: UTF-8, a header row, a row for each track, album, artist or day."),
    ("json", "JSON", "The same rows for programs."),
    ("pdf", "PDF", "A report to read and to hand on: key figures, charts, the most played tracks."),
)


def formats() -> list[JSON]:
    """The kinds of file that there are."""
    return [{"id": id_, "name": name, "description": description} for id_, name, description in FORMATS]


def head(type_: str, window: Window, now: int) -> JSON:
    """What stands before the rows."""
    return {"type": type_, "period": insights.period(window), "generated_at": isoformat(now)}


def file_name(type_: str, window: Window, suffix: str) -> str:
    """The name that a download has."""
    return f"musicsvc-{type_}-{to_date(window.first)}-to-{to_date(window.end - 1)}.{suffix}"


def report(found: Overview, now: int, *, charts: str | None) -> JSON:
    """The overview; `charts` is the name of the days' timeframe, None where they are not asked for."""
    figures = insights.figures(found.figures)
    period = figures.pop("period")
    counts = {"tracks_count": found.tracks, "albums_count": found.albums, "artists_count": found.artists}
    shaped = {
        "period": period,
        "generated_at": isoformat(now),
        "summary": figures | counts,
        "top_tracks": [insights.ranked(row.ranked) for row in found.top],
    }
    return shaped if charts is None else shaped | {"charts": insights.chart(found.chart, charts)}


def printed(found: Overview, now: int) -> JSON:
    """The overview with what a printed report tells beyond the one in JSON."""
    tops = {"top_tracks": found.top, "top_albums": found.top_albums, "top_artists": found.top_artists}
    days = [insights.point(each) for each in found.chart.points]
    tables = {key: [_printed(row) for row in rows] for key, rows in tops.items()}
    return report(found, now, charts=None) | {"name": found.name, "days": days} | tables


def _printed(row: Row) -> JSON:
    return {
        "name": row.name,
        "artists": list(row.artists),
        "plays": row.figures.plays,
        "plays_total": row.figures.plays_total,
        "listeners": row.figures.listeners,
        "plays_change": row.figures.plays_change,
    }
