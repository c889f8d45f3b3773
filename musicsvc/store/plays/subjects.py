"""Things whose plays are counted: tracks, albums and artists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch

if TYPE_CHECKING:
    from collections.abc import Collection

TRACK, ALBUM, ARTIST = 1, 2, 3
KINDS = {"track": TRACK, "album": ALBUM, "artist": ARTIST}
SUBJECTS = """
    SELECT t.id, t.album_id, a.artist_id FROM track t LEFT JOIN track_artist a ON a.track_id = t.id WHERE t.id {among}
"""


class Subject(NamedTuple):
    """A track, album or artist: its kind (TRACK, ALBUM or ARTIST) and its database id."""

    kind: int
    id: int


def among(ids: Collection[int]) -> tuple[str, Any]:
    """Return an SQL condition that matches any of the ids, such as `= ?`, and the value of its placeholder."""
    if len(ids) != 1:
        return dialect.in_list(ids)
    (only,) = ids
    return "= ?", only


def of_tracks(tracks: Collection[int]) -> dict[int, list[Subject]]:
    """Return, by track id, everything that a play of the track counts for: the track, its album and its artists."""
    found: dict[int, list[Subject]] = {}
    condition, ids = dialect.in_list(tracks)
    for track, album, artist in fetch(SUBJECTS.format(among=condition), ids):
        if track not in found:
            found[track] = [Subject(TRACK, track)] if album is None else [Subject(TRACK, track), Subject(ALBUM, album)]
        if artist is not None:
            found[track].append(Subject(ARTIST, artist))
    return found
