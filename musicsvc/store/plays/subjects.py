"""Things whose plays are counted: tracks, albums and artists."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch

TRACK, ALBUM, ARTIST = 1, 2, 3
KINDS = {"track": TRACK, "album": ALBUM, "artist": ARTIST}
# Conditions for the plays of a subject.
OF_TRACKS = {
    TRACK: "track_id = ?",
    ALBUM: "track_id IN (SELECT id FROM track WHERE album_id = ?)",
    ARTIST: "track_id IN (SELECT track_id FROM track_artist WHERE artist_id = ?)",
}
# The subject of a play, and the plays of some subjects. CROSS JOIN: SQLite reads the tables in this order, so only
# the plays of these tracks.
PLAYS = {
    TRACK: ("p.track_id", "play p WHERE p.track_id {among}"),
    ALBUM: ("t.album_id", "track t CROSS JOIN play p WHERE t.album_id {among} AND p.track_id = t.id"),
    ARTIST: ("l.artist_id", "track_artist l CROSS JOIN play p WHERE l.artist_id {among} AND p.track_id = l.track_id"),
}
MEMBERS = {
    ALBUM: "SELECT id FROM track WHERE album_id {among}",
    ARTIST: "SELECT DISTINCT track_id FROM track_artist WHERE artist_id {among}",
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
        return sql.in_list(ids)
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
    given, ids = sql.table_of(sorted(tracks))  # sorted, which takes SQLite half the time
    for track, length, album, artist in fetch(SUBJECTS.format(given=given), ids):
        lengths[track] = length
        albums[track] = album
        if artist is not None:
            artists[track].append(artist)
    return found


def tracks_of(kind: int, ids: Collection[int]) -> list[int]:
    """Return the tracks of these albums or artists (`kind`)."""
    condition, value = among(ids)
    return [track for (track,) in fetch(MEMBERS[kind].format(among=condition), value)]
