"""Read the rows of export files in batches, so that memory use does not depend on the number of rows."""

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from peewee import JOIN, fn
from pyroaring import BitMap64

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import batches, compiled, fetch
from musicsvc.store.insights import belonging, figures, rankings, scopes
from musicsvc.store.insights.figures import Figures
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Album, AlbumArtist, Artist, Track
from musicsvc.store.plays.periods import Window, to_date
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.rollups.listeners import count
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

KINDS = {"tracks": TRACK, "albums": ALBUM, "artists": ARTIST}
PLAYS = "plays"
FIGURES, FIRST_PLAY = tuple(each.name for each in figures.FIGURES), figures.FIRST_PLAY.name
FIGURES_OF = attrgetter(*(each.key for each in figures.FIGURES))
# What other files know tracks and albums by, such as royalty statements.
OF_TRACK, OF_ALBUM = ("isrc", "upc", "album", "label", "release_date"), ("upc", "label", "release_date")
COLUMNS: dict[str, tuple[str, ...]] = {
    "tracks": ("track_id", "track", "artists", *FIGURES, *OF_TRACK, FIRST_PLAY),
    "albums": ("album_id", "album", "artists", *FIGURES, *OF_ALBUM, FIRST_PLAY),
    "artists": ("artist_id", "artist", *FIGURES, FIRST_PLAY),
    PLAYS: ("date", "track_id", "track", "artists", "plays", "listeners", *OF_TRACK),
}
# The columns by which rows are ordered.
KEYS = {type_: columns[: 2 if type_ == PLAYS else 1] for type_, columns in COLUMNS.items()}
OF_ARTIST = "plays_of_artist_period"  # further, of the albums of one artist
# Further, of tracks: what tells an import which album and track a row means.
OF_IMPORTS = ("album_artists", "external_id", "album_external_id")
MOST_ALBUM_ARTISTS = 50  # as many as imports take; the others of a compilation are those of its rows
BETWEEN_ARTISTS = "; "
OF_DELETED = "(deleted tracks)"  # in place of a name
SUBJECTS_PER_BATCH = 256
TRACKS_PER_BATCH = 10_000
ANY = f"SELECT 1 FROM play_count WHERE {counts.IN_SPAN} LIMIT 1"  # noqa: S608 - our own names
PLAYS_OF_DAY = f"SELECT {counts.SUBJECT}, plays, listeners FROM {{rows}} ORDER BY key"  # noqa: S608 - our own names


class Named(NamedTuple):
    """The name of a track, album or artist, and the values of OF_TRACK or OF_ALBUM that go with it."""

    name: str
    codes: tuple[str | None, ...]


class Titled(NamedTuple):
    """A track, album or artist with the names of its artists."""

    subject: Subject
    name: str
    artists: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportRow:
    """A track, album or artist with its figures and the names of its artists."""

    id: int
    named: Named
    artists: tuple[str, ...]
    figures: Figures


def columns(type_: str, scope: Scope) -> tuple[str, ...]:
    further = {"tracks": OF_IMPORTS, "albums": () if scope.artist is None else (OF_ARTIST,)}
    return (*COLUMNS[type_], *further.get(type_, ()))


@contextmanager
def cells(type_: str, scope: Scope, window: Window) -> Iterator[Iterator[tuple[Any, ...]]]:
    """Yield an iterator over the rows of an export, as tuples with the values of `columns`, ordered by id or day.

    Use it in a transaction. Leaving the `with` block closes the iterator, even if writing the file fails.
    """
    kind = KINDS.get(type_)
    found = daily_plays(scope, window) if kind is None else _all_cells(kind, scope, window)
    with scopes.limited_memory(scope), closing(found):
        yield found


def expected(type_: str, scope: Scope) -> int:
    """Return an export's number of rows. For daily plays it is 0, because the number is unknown before reading."""
    return 0 if type_ == PLAYS else len(scope.ids(KINDS[type_]))


def _all_cells(kind: int, scope: Scope, window: Window) -> Generator[tuple[Any, ...]]:
    found = (cells_of(kind, row) for row in rows(kind, scope, window))
    if kind == ALBUM and scope.artist is not None:
        found = _with_plays_of_artist(found, scope.artist, window)
    if kind == TRACK:
        found = for_imports(found)
    yield from found
    if kind == TRACK:
        yield from _deleted(scope, window)


def _with_plays_of_artist(rows: Iterable[tuple[Any, ...]], artist: int, window: Window) -> Generator[tuple[Any, ...]]:
    reader = Reader(window, all_time=False)
    for some in batches(rows, SUBJECTS_PER_BATCH):
        ids = [row[0] for row in some]
        plays = rankings.CountedOfArtist(artist, ids).plays(ids, reader)
        yield from ((*row, plays.get(row[0], 0)) for row in some)


def for_imports(rows: Iterable[tuple[Any, ...]]) -> Generator[tuple[Any, ...]]:
    """Yield the cells of tracks with those of OF_IMPORTS at their end. Use it in a transaction."""
    for some in batches(rows, SUBJECTS_PER_BATCH):
        ids, credited = [row[0] for row in some], defaultdict[int, list[str]](list)
        for track, name in _album_credits(ids):
            credited[track].append(name)
        external = {track: each for track, *each in _external_ids(ids)}
        yield from ((*row, BETWEEN_ARTISTS.join(credited[row[0]]) or None, *external[row[0]]) for row in some)


@compiled
def _album_credits(tracks: Sequence[int]) -> Any:
    query = Track.select(Track.id, Artist.name).join(AlbumArtist, on=AlbumArtist.album == Track.album).join(Artist)
    query = query.where(Track.id.in_(tracks), AlbumArtist.position < MOST_ALBUM_ARTISTS)
    return query.order_by(Track.id, AlbumArtist.position)


@compiled
def _external_ids(tracks: Sequence[int]) -> Any:
    query = Track.select(Track.id, Track.external_id, Album.external_id).join(Album, JOIN.LEFT_OUTER)
    return query.where(Track.id.in_(tracks))


def _deleted(scope: Scope, window: Window) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of one row with the plays of all deleted tracks in the scope, if they have any."""
    total = period = 0
    reader = Reader(window)
    for ids in batches(scope.ids(scopes.DELETED), SUBJECTS_PER_BATCH):
        for within, ever in reader.stream(TRACK, ids).values():
            total, period = total + ever.plays, period + within.plays
    if total:
        plays = {"plays_total": total, "plays_period": period}
        yield None, OF_DELETED, "", *map(plays.get, FIGURES), *(None for _ in (*OF_TRACK, FIRST_PLAY, *OF_IMPORTS))


def rows(kind: int, scope: Scope, window: Window) -> Iterator[ExportRow]:
    """Yield a row for each track, album or artist in the scope, ordered by id."""
    reader = Reader(window, window.before)
    for ids in batches(scope.ids(kind), SUBJECTS_PER_BATCH):
        yield from read_batch(kind, ids, window, reader)


def read_batch(kind: int, ids: Sequence[int], window: Window, reader: Reader) -> Iterator[ExportRow]:
    """Yield the rows of some hundreds of tracks, albums or artists. `ids` must be in ascending order."""
    known, credited = named(kind, ids), authors(kind, ids)
    for each, found in figures.of_several(kind, ids, window, reader).items():
        yield ExportRow(each, known[each], tuple(credited.get(each, ())), found)


def named(kind: int, ids: Sequence[int]) -> dict[int, Named]:
    """Return the names of tracks, albums or artists, and their codes, by id."""
    return {each: Named(name, tuple(codes)) for each, name, *codes in _named(ids, kind=kind)}


@compiled
def _named(ids: Sequence[int], *, kind: int) -> Any:
    """Select ids and names with the values of OF_TRACK or OF_ALBUM."""
    if kind == TRACK:
        released = fn.COALESCE(Track.release_date, Album.release_date)
        columns = Track.id, Track.name, Track.isrc, Album.upc, Album.name, Album.label, released
        return Track.select(*columns).join(Album, JOIN.LEFT_OUTER).where(Track.id.in_(ids))
    if kind == ALBUM:
        return Album.select(Album.id, Album.name, Album.upc, Album.label, Album.release_date).where(Album.id.in_(ids))
    return Artist.select(Artist.id, Artist.name).where(Artist.id.in_(ids))


def names(kind: int, ids: Sequence[int]) -> dict[int, str]:
    """Return the names of tracks, albums or artists by id."""
    return {each: found.name for each, found in named(kind, ids).items()}


def authors(kind: int, ids: Sequence[int]) -> dict[int, list[str]]:
    """Return lists of artist names, in credited order, by track or album id. Empty if `ids` are ids of artists."""
    found: dict[int, list[str]] = defaultdict(list)
    for subject, name in _credits(ids, kind=kind) if kind in belonging.CREDITED else ():
        found[subject].append(name)
    return found


def titled(kind: int, ids: Sequence[int]) -> dict[int, Titled]:
    """Return tracks, albums or artists with the names of their artists, by id."""
    if not ids:
        return {}
    found, by = names(kind, ids), authors(kind, ids)
    return {each: Titled(Subject(kind, each), name, tuple(by.get(each, ()))) for each, name in found.items()}


@compiled
def _credits(ids: Sequence[int], *, kind: int) -> Any:
    credited = belonging.CREDITED[kind]
    query = credited.model.select(credited, Artist.name).join(Artist).where(credited.in_(ids))
    return query.order_by(credited, credited.model.position)


def cells_of(kind: int, row: ExportRow) -> tuple[Any, ...]:
    """Return the values of a row, in the order of COLUMNS."""
    artists = () if kind == ARTIST else (BETWEEN_ARTISTS.join(row.artists),)
    return row.id, row.named.name, *artists, *FIGURES_OF(row.figures), *row.named.codes, row.figures.first_play


def daily_plays(scope: Scope, window: Window) -> Generator[tuple[Any, ...]]:
    """Yield the cells of each day and track with plays, ordered by date and id."""
    tracks, deleted = scope.ids(TRACK), scope.ids(scopes.DELETED)
    known: dict[int, tuple[Named, str]] = {}  # of a limited number of tracks, with the names of their artists
    for day in range(window.first, window.end):
        if not fetch(ANY, *counts.span(range(day, day + 1))):
            continue
        date = to_date(day).isoformat()
        for ids in batches(tracks, TRACKS_PER_BATCH):
            found = _plays_of_day(day, ids, tracks)
            for some in batches(found, SUBJECTS_PER_BATCH):
                _add_names(known, [track for track, *_ in some])
                for track, plays, packed in some:
                    of, artists = known[track]
                    yield date, track, of.name, artists, plays, count(packed), *of.codes

        plays_of_deleted = sum(
            plays for ids in batches(deleted, TRACKS_PER_BATCH) for _, plays, _ in _plays_of_day(day, ids, deleted)
        )
        if plays_of_deleted:
            yield date, None, OF_DELETED, "", plays_of_deleted, None, *(None for _ in OF_TRACK)


def _plays_of_day(day: int, ids: Sequence[int], among: BitMap64) -> Iterator[tuple[Any, ...]]:
    """Yield the id, plays and packed listeners of these tracks; `among`: without others, which lie between them."""
    rows, values = counts.dense_rows(counts.starts([day]), TRACK, ids)
    return (row for row in sql.stream_rows(PLAYS_OF_DAY.format(rows=rows), *values) if row[0] in among)


def _add_names(known: dict[int, tuple[Named, str]], tracks: Sequence[int]) -> None:
    """Add the names and artists of these tracks. Remove all others if there would be more than TRACKS_PER_BATCH."""
    new = [track for track in tracks if track not in known]
    if len(known) + len(new) > TRACKS_PER_BATCH:
        known.clear()
        new = list(tracks)
    if new:
        credited, names_of = authors(TRACK, new), named(TRACK, new)
        known.update((track, (names_of[track], BETWEEN_ARTISTS.join(credited.get(track, ())))) for track in new)
