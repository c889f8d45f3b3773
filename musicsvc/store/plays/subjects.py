"""Things whose plays are counted: tracks, albums and artists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch

if TYPE_CHECKING:
    from collections.abc import Collection

TRACK, ALBUM, ARTIST = 1, 2, 3
KINDS = {"track": TRACK, "album": ALBUM, "artist": ARTIST}
# Conditions for the plays of a subject.
OF_TRACKS = {
    TRACK: "track_id = ?",
    ALBUM: "track_id IN (SELECT id FROM track WHERE album_id = ?)",
    ARTIST: "track_id IN (SELECT track_id FROM track_artist WHERE artist_id = ?)",
}
SUBJECTS = """
    SELECT t.id, t.duration, t.album_id, a.artist_id
    FROM track t LEFT JOIN track_artist a ON a.track_id = t.id WHERE t.id {among}
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


class PlayedTrack(NamedTuple):
    """A track's length in milliseconds (0 if unknown), and everything that its plays count for.

    These are the track, its album and its artists.
    """

    length: int
    subjects: list[Subject]


def of_tracks(tracks: Collection[int]) -> dict[int, PlayedTrack]:
    """Return the lengths and subjects of tracks by track id."""
    found: dict[int, PlayedTrack] = {}
    condition, ids = dialect.in_list(tracks)
    for track, length, album, artist in fetch(SUBJECTS.format(among=condition), ids):
        if track not in found:
            of_album = [] if album is None else [Subject(ALBUM, album)]
            found[track] = PlayedTrack(length, [Subject(TRACK, track), *of_album])
        if artist is not None:
            found[track].subjects.append(Subject(ARTIST, artist))
    return found
