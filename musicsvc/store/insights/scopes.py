"""Scopes of exports and reports: everything that an account manages, one artist, or the whole catalog."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from pyroaring import BitMap64

from musicsvc.store.accounts import users
from musicsvc.store.catalog import artists
from musicsvc.store.engine import sql
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY = {TRACK: "SELECT id FROM track", ALBUM: "SELECT id FROM album", ARTIST: "SELECT id FROM artist"}
SOME = {
    TRACK: "SELECT l.track_id FROM track_artist l JOIN artist a ON a.id = l.artist_id WHERE {which}",
    ALBUM: "SELECT l.album_id FROM album_artist l JOIN artist a ON a.id = l.artist_id WHERE {which}",
    ARTIST: "SELECT a.id FROM artist a WHERE {which}",
}
IDS_PER_BATCH = 10_000


class Scope(NamedTuple):
    """Selects tracks, albums and artists by artist id (`artist`) or managing account id (`manager`). None means any."""

    manager: int | None = None
    artist: int | None = None

    def ids(self, kind: int) -> BitMap64:
        """Return the ids of the tracks, albums or artists in the scope. Raises NotFound for an unknown artist."""
        if self.artist is not None:
            artists.get(self.artist)
        bounds = {"a.manager_id = ?": self.manager, "a.id = ?": self.artist}
        given = {condition: value for condition, value in bounds.items() if value is not None}
        query = SOME[kind].format(which=" AND ".join(given)) if given else EVERY[kind]
        rows = sql.stream_rows(query, *given.values())
        found = BitMap64()
        # In batches, since BitMap64 would first create a list of all ids.
        while some := [row[0] for row in islice(rows, IDS_PER_BATCH)]:
            found.update(some)
        return found


def name(scope: Scope) -> str | None:
    """Return the name of the scope's artist or account, or None for the whole catalog."""
    if scope.artist is not None:
        return artists.get(scope.artist).name
    if scope.manager is None:
        return None
    return users.get(scope.manager).display_name


def batches(ids: BitMap64, size: int) -> Iterator[list[int]]:
    piece: list[int] = []
    for each in ids:
        piece.append(each)
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece
