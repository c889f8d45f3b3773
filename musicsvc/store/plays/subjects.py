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


class PlayedTracks(NamedTuple):
    """Tracks by id: their lengths in milliseconds (0 if unknown), and the subjects for which their plays count."""

    lengths: dict[int, int]
    subjects: dict[int, list[Subject]]  # the track, its album and its artists


def of_tracks(tracks: Collection[int]) -> PlayedTracks:
    """Return the lengths and the subjects of the tracks that exist."""
    lengths: dict[int, int] = {}
    found: dict[int, list[Subject]] = {}
    new = tuple.__new__  # half as long as Subject(…), which each play needs three times
    condition, ids = dialect.in_list(tracks)
    for track, length, album, artist in fetch(SUBJECTS.format(among=condition), ids):
        if track not in found:
            lengths[track] = length
            found[track] = [new(Subject, (TRACK, track))]
            if album is not None:
                found[track].append(new(Subject, (ALBUM, album)))
        if artist is not None:
            found[track].append(new(Subject, (ARTIST, artist)))
    return PlayedTracks(lengths, found)
