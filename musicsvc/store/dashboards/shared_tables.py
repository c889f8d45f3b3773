"""The figures of a shared report as tables, which programs read by its link. Names of columns never change."""

from typing import Any

from musicsvc.store.dashboards import tables
from musicsvc.store.dashboards.report_links import SharedReport
from musicsvc.store.insights import charts, export_rows, figures, rankings
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.subjects import ALBUM, ARTIST

DAYS = "days"
COLUMNS: dict[str, tuple[str, ...]] = {
    DAYS: ("date", "plays", "listeners", "likes", "reposts"),
    "tracks": ("track", "artists", "album", "plays_period", "listeners_period", "isrc", "upc", "release_date"),
    "albums": ("album", "artists", "plays_period", "listeners_period", "upc", "release_date"),
}
COMPARED = "subject"  # the first column of those that are compared
RANKED = {
    (ALBUM, "tracks"): rankings.tracks_of_album,
    (ARTIST, "tracks"): rankings.tracks_of_artist,
    (ARTIST, "albums"): rankings.albums_of_artist,
}


def names(shared: SharedReport) -> list[str]:
    ranked = [] if shared.compared else [table for kind, table in RANKED if kind == shared.subjects[0].kind]
    return [DAYS, *ranked]


def read(shared: SharedReport, table: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the name of the subject, or those of all, and the rows of a table of the report. Call in a transaction."""
    subjects, window, columns = shared.subjects, shared.window, COLUMNS[table]
    named = [figures.name(each) for each in subjects]
    if table == DAYS:
        rows = [
            ({COMPARED: name} if shared.compared else {}) | {"date": to_date(day).isoformat()} | point._asdict()
            for each, name in zip(subjects, named, strict=True)
            for day, point in enumerate(charts.build(each, window).points, window.first)
        ]
    else:
        kind, (subject,) = export_rows.KINDS[table], subjects
        ids = [each.id for each in RANKED[subject.kind, table](subject.id, window)]
        found = (export_rows.cells_of(kind, row) for row in tables.read(kind, ids, window))
        by_name = (dict(zip(export_rows.COLUMNS[table], cells, strict=True)) for cells in found)
        rows = [{each: row[each] for each in columns} for row in by_name]
    return ", ".join(named), rows
