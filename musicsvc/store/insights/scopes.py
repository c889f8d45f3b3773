"""Scopes of exports and reports: all that an account manages, an artist, an album, a track, or the whole catalog."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import date
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from pyroaring import BitMap64

from musicsvc.store.accounts import users
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.insights import figures
from musicsvc.store.plays.subjects import ACCOUNT, ALBUM, ARTIST, TRACK, Subject

T = TypeVar("T")
DELETED = -1  # in place of a kind: deleted tracks, whose plays still count
EVERY = {
    TRACK: "SELECT id FROM track",
    ALBUM: "SELECT id FROM album",
    ARTIST: "SELECT id FROM artist",
    DELETED: "SELECT DISTINCT track_id FROM deleted_track",
}
SOME = {
    TRACK: "SELECT l.track_id FROM track_artist l JOIN artist a ON a.id = l.artist_id WHERE {which}",
    ALBUM: "SELECT l.album_id FROM album_artist l JOIN artist a ON a.id = l.artist_id WHERE {which}",
    ARTIST: "SELECT a.id FROM artist a WHERE {which}",
    DELETED: "SELECT d.track_id FROM deleted_track d JOIN artist a ON d.kind = 3 AND a.id = d.subject WHERE {which}",
}
# What belongs to an album or a track: nothing that has other plays too. So an album has no artists, a track no album.
WITHIN = {
    (ALBUM, ALBUM): "SELECT id FROM album WHERE id = ?",
    (ALBUM, TRACK): "SELECT id FROM track WHERE album_id = ?",
    (ALBUM, DELETED): "SELECT track_id FROM deleted_track WHERE kind = 2 AND subject = ?",
    (TRACK, TRACK): "SELECT id FROM track WHERE id = ?",
}
NONE = "SELECT id FROM track WHERE FALSE"
# Tracks with several artists, or without any; deleted ones too.
UNEVEN = """
    SELECT t.id, COUNT(l.artist_id) FROM track t LEFT JOIN track_artist l ON l.track_id = t.id
    GROUP BY t.id HAVING COUNT(l.artist_id) <> 1
    UNION ALL SELECT track_id, COUNT(CASE kind WHEN 3 THEN 1 END) FROM deleted_track
    GROUP BY track_id HAVING COUNT(CASE kind WHEN 3 THEN 1 END) <> 1 ORDER BY 1
"""
NEWEST_ALBUMS = """
    SELECT id FROM album WHERE {which} release_date <= ? ORDER BY release_date DESC, id DESC LIMIT ?
"""
IDS_PER_BATCH = 10_000
FEW_TRACKS = 256  # of a small scope


class Scope(NamedTuple):
    """Selects tracks, albums and artists. None means any.

    At most one of `artist`, `album` and `track` (ids) is given: the subject. `manager`: the account that manages the
    artists. An album or a track is selected whoever manages it, so check the right to it before.
    """

    manager: int | None = None
    artist: int | None = None
    album: int | None = None
    track: int | None = None

    @property
    def subject(self) -> Subject | None:
        """The artist, album or track to which the scope is limited."""
        given = ((ARTIST, self.artist), (ALBUM, self.album), (TRACK, self.track))
        return next((Subject(kind, each) for kind, each in given if each is not None), None)

    def ids(self, kind: int) -> BitMap64:
        """Return the ids of the tracks, albums, artists or deleted tracks in the scope.

        Raises NotFound for an unknown subject.
        """
        if self.subject is not None:
            figures.name(self.subject)
        rows = sql.stream_rows(*self._select(kind))
        found = BitMap64()
        # In batches, since BitMap64 would first create a list of all ids.
        while some := [row[0] for row in islice(rows, IDS_PER_BATCH)]:
            found.update(some)
        return found

    def is_small(self) -> bool:
        """Return whether the scope has at most FEW_TRACKS tracks."""
        statement, *values = self._select(TRACK)
        several = f"SELECT DISTINCT * FROM ({statement}) AS tracks LIMIT ?"  # noqa: S608 - our own statement
        return len(fetch(several, *values, FEW_TRACKS + 1)) <= FEW_TRACKS

    def newest_albums(self, until: date, count: int) -> list[int]:
        """Return the ids of the newest albums that were released on this day or before it, newest first."""
        statement, *values = self._select(ALBUM)
        which = "" if statement == EVERY[ALBUM] else f"id IN ({statement}) AND"
        return [row[0] for row in fetch(NEWEST_ALBUMS.format(which=which), *values, until.isoformat(), count)]

    def _select(self, kind: int) -> list[Any]:
        """Return SQL, and its parameters, for the ids of the tracks, albums or artists in the scope."""
        if self.subject is None or self.subject.kind == ARTIST:
            return self._query(SOME[kind], EVERY[kind])
        within = WITHIN.get((self.subject.kind, kind))
        return [NONE] if within is None else [within, self.subject.id]

    def _query(self, some: str, every: str) -> list[Any]:
        """Return SQL and its parameters: `some` with the scope's conditions, or `every` for the whole catalog."""
        bounds = {"a.manager_id = ?": self.manager, "a.id = ?": self.artist}
        given = {condition: value for condition, value in bounds.items() if value is not None}
        if not given:
            return [every]
        return [some.format(which=" AND ".join(given)), *[*given.values()] * some.count("{which}")]


class Part(NamedTuple):
    """Subjects of one kind, whose plays are added to a sum `times` times, or subtracted if it is negative."""

    kind: int
    ids: BitMap64
    times: int


def parts(scope: Scope, artists: BitMap64) -> Iterator[Part]:
    """Yield parts whose plays, added up, are the plays of the scope.

    Of an account, an artist, an album or a track this is one part. The whole catalog has its artists, and tracks to
    correct the sum, which has the plays of a track once for each of its artists: tracks of several artists are
    subtracted, and tracks without artist are added.
    """
    if scope.subject is not None and scope.subject.kind != ARTIST:
        yield Part(scope.subject.kind, BitMap64([scope.subject.id]), 1)
    elif scope.manager is not None and scope.subject is None:
        yield Part(ACCOUNT, BitMap64([scope.manager]), 1)
    else:
        yield Part(ARTIST, artists, 1)
    if scope == Scope():
        for count, tracks in _uneven().items():
            yield Part(TRACK, tracks, 1 - count)


def _uneven() -> dict[int, BitMap64]:
    """Return the ids of tracks with several artists, or with none, by the number of artists."""
    found: dict[int, BitMap64] = defaultdict(BitMap64)
    for track, count in sql.stream_rows(UNEVEN):
        found[count].add(track)
    return found


def name(scope: Scope) -> str | None:
    """Return the name of the scope's subject or account, or None for the whole catalog."""
    if scope.subject is not None:
        return figures.name(scope.subject)
    if scope.manager is None:
        return None
    return users.get(scope.manager).display_name


@contextmanager
def limited_memory(scope: Scope) -> Iterator[None]:
    """Disable SQLite's memory map inside the `with` block, unless the scope has at most FEW_TRACKS tracks.

    Memory-mapped pages increase the memory use of the process, but reading without the map takes longer.
    """
    unlimited = not sql.is_sqlite() or scope.is_small()
    with nullcontext() if unlimited else sql.without_memory_map():
        yield


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of `size`; the last may be shorter."""
    piece: list[T] = []
    for each in items:
        piece.append(each)
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece
