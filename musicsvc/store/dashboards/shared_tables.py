"""The figures of a shared report as tables, which programs read by its link. Names of columns never change."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from musicsvc.store.dashboards import tables
from musicsvc.store.dashboards.report_links import SharedReport
from musicsvc.store.insights import charts, export_rows, rankings
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


class SharedTable(NamedTuple):
    """A table with the names of its columns. `name`: the name of the subject, or those of all."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def names(shared: SharedReport) -> list[str]:
    """Return the names of the tables that the report has."""
    return [
        each for each in COLUMNS if each == DAYS or (not shared.compared and (shared.subjects[0].kind, each) in RANKED)
    ]


def read(shared: SharedReport, table: str) -> SharedTable:
    """Return a table of the report. Call in a transaction."""
    kind, subjects, window, columns = shared.subjects[0].kind, shared.subjects, shared.window, COLUMNS[table]
    named = export_rows.names(kind, sorted(each.id for each in subjects))
    name = ", ".join(named[each.id] for each in subjects)
    if table != DAYS:
        ids = [each.id for each in RANKED[kind, table](subjects[0].id, window)]
        found = (
            export_rows.cells_of(export_rows.KINDS[table], row)
            for row in tables.read(export_rows.KINDS[table], ids, window)
        )
        places = [export_rows.COLUMNS[table].index(each) for each in columns]
        return SharedTable(name, columns, [[cells[place] for place in places] for cells in found])
    dates = [to_date(day).isoformat() for day in window.numbers]
    rows = [
        (*([named[each.id]] if shared.compared else ()), date, *point)
        for each in subjects
        for date, point in zip(dates, charts.build(each, window).points, strict=True)
    ]
    return SharedTable(name, (COMPARED, *columns) if shared.compared else columns, rows)
