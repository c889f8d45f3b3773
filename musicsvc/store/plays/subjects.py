"""Things whose plays are counted: tracks, albums and artists.

Plays of a deleted track stay, and still count for its album and artists (table `deleted_track`).
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch

TRACK, ALBUM, ARTIST = 1, 2, 3
KINDS = {"track": TRACK, "album": ALBUM, "artist": ARTIST}
# The tracks of albums and of artists, with the deleted ones.
TRACKS = {
    ALBUM: """(SELECT album_id AS subject, id AS track_id FROM track
        UNION ALL SELECT subject, track_id FROM deleted_track WHERE kind = 2) AS members""",
    ARTIST: """(SELECT artist_id AS subject, track_id FROM track_artist
        UNION ALL SELECT subject, track_id FROM deleted_track WHERE kind = 3) AS members""",
}
# Conditions for the plays of a subject.
OF_TRACKS = {TRACK: "track_id = ?"} | {
    kind: f"track_id IN (SELECT members.track_id FROM {tracks} WHERE subject = ?)"  # noqa: S608 - our own names
    for kind, tracks in TRACKS.items()
}
# The subject of a play, and the plays of some subjects. CROSS JOIN: SQLite reads the tables in this order, so only
# the plays of these tracks.
PLAYS = {TRACK: ("p.track_id", "play p WHERE p.track_id {among}")} | {
    kind: ("subject", f"{tracks} CROSS JOIN play p WHERE subject {{among}} AND p.track_id = members.track_id")
    for kind, tracks in TRACKS.items()
}
SUBJECTS = """
    SELECT t.id, t.duration, t.album_id, a.artist_id
    FROM {given} CROSS JOIN track t LEFT JOIN track_artist a ON a.track_id = t.id WHERE t.id = given.value
"""
DELETED = "SELECT track_id, kind, subject, duration FROM deleted_track WHERE track_id {among} ORDER BY kind, subject"


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
    """Return the lengths, albums and artists of the tracks that exist, and of deleted ones with plays."""
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
    if len(lengths) < len(tracks):
        _add_deleted(found, [track for track in tracks if track not in lengths])
    return found


def _add_deleted(found: PlayedTracks, tracks: Collection[int]) -> None:
    condition, value = among(tracks)
    for track, kind, subject, length in fetch(DELETED.format(among=condition), value):
        if kind == TRACK:
            found.lengths[track], found.albums[track] = length, None
        elif kind == ALBUM:
            found.albums[track] = subject
        else:
            found.artists[track].append(subject)


def tracks_of(kind: int, ids: Collection[int]) -> list[int]:
    """Return the tracks of these albums or artists (`kind`), with the deleted ones that had plays."""
    condition, value = among(ids)
    statement = f"SELECT DISTINCT members.track_id FROM {TRACKS[kind]} WHERE subject {condition}"  # noqa: S608 - ours
    return [track for (track,) in fetch(statement, value)]
