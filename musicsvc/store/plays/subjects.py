"""Things whose plays are counted: tracks, albums and artists."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch

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
    FROM {given} CROSS JOIN track t LEFT JOIN track_artist a ON a.track_id = t.id WHERE t.id = given.value
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
    """Tracks by id: their lengths in milliseconds (0 if unknown), their albums, and their artists."""

    lengths: dict[int, int]
    albums: dict[int, int | None]
    artists: defaultdict[int, list[int]]

    def subjects(self) -> dict[int, list[Subject]]:
        """Return by track id what the plays of the track count for: the track itself, its album and its artists."""
        found = {track: [Subject(TRACK, track)] for track in self.lengths}
        for track, album in self.albums.items():
            if album is not None:
                found[track].append(Subject(ALBUM, album))
            found[track] += [Subject(ARTIST, artist) for artist in self.artists[track]]
        return found


def of_tracks(tracks: Collection[int]) -> PlayedTracks:
    """Return the lengths, albums and artists of the tracks that exist."""
    found = PlayedTracks({}, {}, defaultdict(list))
    if not tracks:  # SQLite refuses an empty array
        return found
    lengths, albums, artists = found
    given, ids = dialect.table_of(sorted(tracks))  # sorted, which takes SQLite half the time
    for track, length, album, artist in fetch(SUBJECTS.format(given=given), ids):
        lengths[track] = length
        albums[track] = album
        if artist is not None:
            artists[track].append(artist)
    return found
