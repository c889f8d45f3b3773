"""Read the rows of export files in batches, so that memory use does not depend on the number of rows."""

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.insights import figures, scopes
from musicsvc.store.insights.figures import Figures
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays.periods import Window, to_date
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.rollups.listeners import count
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

KINDS = {"tracks": TRACK, "albums": ALBUM, "artists": ARTIST}
PLAYS = "plays"
FIGURES = tuple(each.name for each in figures.FIGURES)
FIGURES_OF = attrgetter(*(each.key for each in figures.FIGURES))
COLUMNS: dict[str, tuple[str, ...]] = {
    "tracks": ("track_id", "track", "artists", *FIGURES),
    "albums": ("album_id", "album", "artists", *FIGURES),
    "artists": ("artist_id", "artist", *FIGURES),
    PLAYS: ("date", "track_id", "track", "artists", "plays", "listeners"),
}
KEYS: dict[str, tuple[str, ...]] = {  # the columns by which rows are ordered
    "tracks": ("track_id",),
    "albums": ("album_id",),
    "artists": ("artist_id",),
    PLAYS: ("date", "track_id"),
}
BETWEEN_ARTISTS = "; "
SUBJECTS_PER_BATCH = 256
TRACKS_PER_BATCH = 10_000
NAMES = {kind: f"SELECT id, name FROM {noun[:-1]} WHERE id {{among}}" for noun, kind in KINDS.items()}  # noqa: S608 - constants
CREDITS = {
    kind: f"""
        SELECT l.{noun}_id, a.name FROM {noun}_artist l JOIN artist a ON a.id = l.artist_id
        WHERE l.{noun}_id {{among}} ORDER BY l.{noun}_id, l.position
    """  # noqa: S608 - our own names
    for noun, kind in (("track", TRACK), ("album", ALBUM))
}
ANY = f"SELECT 1 FROM play_count WHERE {counts.IN_SPAN} LIMIT 1"  # noqa: S608 - our own names
PLAYS_OF_DAY = f"""
    SELECT t.id, t.name, d.plays, d.listeners
    FROM (SELECT key AS place, {counts.SUBJECT} AS track_id, plays, listeners FROM {{rows}}) AS d
    JOIN track t ON t.id = d.track_id ORDER BY d.place
"""  # noqa: S608 - our own names


@dataclass(frozen=True, slots=True)
class ExportRow:
    """A track, album or artist with its figures and the names of its artists."""

    id: int
    name: str
    artists: tuple[str, ...]
    figures: Figures


@contextmanager
def cells(type_: str, scope: Scope, window: Window) -> Iterator[Iterator[tuple[Any, ...]]]:
    """Yield an iterator over the rows of an export, as tuples with the columns COLUMNS[type_], ordered by id or day.

    Use it in a transaction. Leaving the `with` block closes the iterator, even if writing the file fails.
    """
    kind = KINDS.get(type_)
    found = daily_plays(scope, window) if kind is None else (_cells(kind, row) for row in rows(kind, scope, window))
    with scopes.limited_memory(scope), closing(found):
        yield found


def expected(type_: str, scope: Scope) -> int:
    """Return an export's number of rows. For daily plays it is 0, because the number is unknown before reading."""
    return 0 if type_ == PLAYS else len(scope.ids(KINDS[type_]))


def rows(kind: int, scope: Scope, window: Window) -> Iterator[ExportRow]:
    """Yield a row for each track, album or artist in the scope, ordered by id."""
    reader = Reader(window, window.before)
    for ids in scopes.batches(scope.ids(kind), SUBJECTS_PER_BATCH):
        yield from read_batch(kind, ids, window, reader)


def read_batch(kind: int, ids: Sequence[int], window: Window, reader: Reader) -> Iterator[ExportRow]:
    """Yield the rows of some hundreds of tracks, albums or artists. `ids` must be in ascending order."""
    named, credited = names(kind, ids), authors(kind, ids)
    for each, found in figures.stream(kind, ids, window, reader).items():
        yield ExportRow(each, named[each], tuple(credited.get(each, ())), found)


def names(kind: int, ids: Sequence[int]) -> dict[int, str]:
    """Return the names of tracks, albums or artists by id."""
    condition, value = sql.in_list(ids)
    return dict(fetch(NAMES[kind].format(among=condition), value))


def authors(kind: int, ids: Sequence[int]) -> dict[int, list[str]]:
    """Return lists of artist names, in credited order, by track or album id. Empty if `ids` are ids of artists."""
    found: dict[int, list[str]] = defaultdict(list)
    if kind in CREDITS:
        condition, value = sql.in_list(ids)
        for subject, name in fetch(CREDITS[kind].format(among=condition), value):
            found[subject].append(name)
    return found


def _cells(kind: int, row: ExportRow) -> tuple[Any, ...]:
    artists = () if kind == ARTIST else (BETWEEN_ARTISTS.join(row.artists),)
    return row.id, row.name, *artists, *FIGURES_OF(row.figures)


def daily_plays(scope: Scope, window: Window) -> Generator[tuple[Any, ...]]:
    """Yield the cells of each day and track with plays, ordered by date and id."""
    tracks = scope.ids(TRACK)
    credited: dict[int, str] = {}  # the artists of tracks, of a limited number
    for day in range(window.first, window.end):
        if not fetch(ANY, *counts.span(range(day, day + 1))):
            continue
        date = to_date(day).isoformat()
        for ids in scopes.batches(tracks, TRACKS_PER_BATCH):
            rows, values = counts.dense_rows(counts.starts([day]), TRACK, ids)
            found = (
                (track, name, plays, count(packed))
                for track, name, plays, packed in sql.stream_rows(PLAYS_OF_DAY.format(rows=rows), *values)
                if track in tracks
            )
            for some in scopes.batches(found, SUBJECTS_PER_BATCH):
                _add_credits(credited, [track for track, *_ in some])
                for track, name, plays, listeners in some:
                    yield date, track, name, credited[track], plays, listeners


def _add_credits(credited: dict[int, str], tracks: Sequence[int]) -> None:
    """Add the names of the artists of these tracks. Remove all others if there would be more than TRACKS_PER_BATCH."""
    new = [track for track in tracks if track not in credited]
    if len(credited) + len(new) > TRACKS_PER_BATCH:
        credited.clear()
        new = list(tracks)
    if new:
        found = authors(TRACK, new)
        credited.update((track, BETWEEN_ARTISTS.join(found.get(track, ()))) for track in new)
