"""Scopes of exports and reports: everything that an account manages, one artist, or the whole catalog."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pyroaring import BitMap64

from musicsvc.store.accounts import users
from musicsvc.store.catalog import artists
from musicsvc.store.engine import dialect, sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date

EVERY = {TRACK: "SELECT id FROM track", ALBUM: "SELECT id FROM album", ARTIST: "SELECT id FROM artist"}
SOME = {
    TRACK: "SELECT l.track_id FROM track_artist l JOIN artist a ON a.id = l.artist_id WHERE {which}",
    ALBUM: "SELECT l.album_id FROM album_artist l JOIN artist a ON a.id = l.artist_id WHERE {which}",
    ARTIST: "SELECT a.id FROM artist a WHERE {which}",
}
# Tracks with several of the scope's artists, and of the whole catalog also those without any.
UNEVEN = """
    SELECT l.track_id, COUNT(*) FROM track_artist l JOIN artist a ON a.id = l.artist_id WHERE {which}
    GROUP BY l.track_id HAVING COUNT(*) > 1 ORDER BY l.track_id
"""
UNEVEN_OF_ALL = """
    SELECT t.id, COUNT(l.artist_id) FROM track t LEFT JOIN track_artist l ON l.track_id = t.id
    GROUP BY t.id HAVING COUNT(l.artist_id) <> 1 ORDER BY t.id
"""
NEWEST_ALBUMS = """
    SELECT DISTINCT b.id, b.release_date FROM album b JOIN album_artist l ON l.album_id = b.id
    JOIN artist a ON a.id = l.artist_id WHERE {which} AND b.release_date <= ?
    ORDER BY b.release_date DESC, b.id DESC LIMIT ?
"""
NEWEST_OF_ALL = "SELECT id FROM album WHERE release_date <= ? ORDER BY release_date DESC, id DESC LIMIT ?"
IDS_PER_BATCH = 10_000
FEW_TRACKS = 256  # of a small scope


class Scope(NamedTuple):
    """Selects tracks, albums and artists by artist id (`artist`) or managing account id (`manager`). None means any."""

    manager: int | None = None
    artist: int | None = None

    def ids(self, kind: int) -> BitMap64:
        """Return the ids of the tracks, albums or artists in the scope. Raises NotFound for an unknown artist."""
        if self.artist is not None:
            artists.get(self.artist)
        rows = sql.stream_rows(*self._query(SOME[kind], EVERY[kind]))
        found = BitMap64()
        # In batches, since BitMap64 would first create a list of all ids.
        while some := [row[0] for row in islice(rows, IDS_PER_BATCH)]:
            found.update(some)
        return found

    def is_small(self) -> bool:
        """Return whether the scope has at most FEW_TRACKS tracks."""
        statement, *values = self._query(SOME[TRACK], EVERY[TRACK])
        several = f"SELECT DISTINCT * FROM ({statement}) AS tracks LIMIT ?"  # noqa: S608 - our own statement
        return len(fetch(several, *values, FEW_TRACKS + 1)) <= FEW_TRACKS

    def uneven(self) -> dict[int, BitMap64]:
        """Return the ids of tracks with several artists in the scope, or with none, by the number of artists."""
        found: dict[int, BitMap64] = defaultdict(BitMap64)
        for track, count in sql.stream_rows(*self._query(UNEVEN, UNEVEN_OF_ALL)):
            found[count].add(track)
        return found

    def newest_albums(self, until: date, count: int) -> list[int]:
        """Return the ids of the newest albums that were released on this day or before it, newest first."""
        statement, *values = self._query(NEWEST_ALBUMS, NEWEST_OF_ALL)
        return [row[0] for row in fetch(statement, *values, until.isoformat(), count)]

    def _query(self, some: str, every: str) -> list[Any]:
        """Return SQL and its parameters: `some` with the scope's conditions, or `every` for the whole catalog."""
        bounds = {"a.manager_id = ?": self.manager, "a.id = ?": self.artist}
        given = {condition: value for condition, value in bounds.items() if value is not None}
        return [some.format(which=" AND ".join(given)) if given else every, *given.values()]


class Part(NamedTuple):
    """Artists or tracks (`kind`) whose plays are added to a sum `times` times, or subtracted if `times` is negative."""

    kind: int
    ids: BitMap64
    times: int


def parts(scope: Scope, artists: BitMap64) -> Iterator[Part]:
    """Yield parts whose plays, added up, are the plays of the scope: its artists, and tracks to correct the sum.

    The sum over the artists has the plays of a track once for each of its artists. So tracks of several artists are
    subtracted, and tracks without artist are added.
    """
    yield Part(ARTIST, artists, 1)
    for count, tracks in scope.uneven().items():
        yield Part(TRACK, tracks, 1 - count)


def name(scope: Scope) -> str | None:
    """Return the name of the scope's artist or account, or None for the whole catalog."""
    if scope.artist is not None:
        return artists.get(scope.artist).name
    if scope.manager is None:
        return None
    return users.get(scope.manager).display_name


@contextmanager
def limited_memory(scope: Scope) -> Iterator[None]:
    """Disable SQLite's memory map inside the `with` block, unless the scope has at most FEW_TRACKS tracks.

    Memory-mapped pages increase the memory use of the process, but reading without the map takes longer.
    """
    unlimited = not dialect.is_sqlite() or scope.is_small()
    with nullcontext() if unlimited else sql.without_memory_map():
        yield


def batches(ids: Iterable[int], size: int) -> Iterator[list[int]]:
    piece: list[int] = []
    for each in ids:
        piece.append(each)
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece
