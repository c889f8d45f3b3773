"""Things whose plays are counted: tracks, albums, artists, and accounts with all that they manage.

Plays of a deleted track stay, and still count for its album and artists (table `deleted_track`).
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch

# An account has the plays of the tracks that credit one of its artists, each play once.
ACCOUNT, TRACK, ALBUM, ARTIST = 0, 1, 2, 3
KINDS = {"track": TRACK, "album": ALBUM, "artist": ARTIST}
NOUNS = {kind: noun for noun, kind in KINDS.items()} | {ACCOUNT: "account"}
# The tracks of albums, artists and accounts, with the deleted ones.
TRACKS = {
    ALBUM: """(SELECT album_id AS subject, id AS track_id FROM track
        UNION ALL SELECT subject, track_id FROM deleted_track WHERE kind = 2) AS members""",
    ARTIST: """(SELECT artist_id AS subject, track_id FROM track_artist
        UNION ALL SELECT subject, track_id FROM deleted_track WHERE kind = 3) AS members""",
    # Of several artists of a track with the same manager, one counts.
    ACCOUNT: """(SELECT a.manager_id AS subject, l.track_id FROM artist a JOIN track_artist l ON l.artist_id = a.id
        WHERE NOT EXISTS (
            SELECT 1 FROM track_artist o JOIN artist b ON b.id = o.artist_id
            WHERE o.track_id = l.track_id AND b.manager_id = a.manager_id AND o.artist_id < a.id
        )
        UNION ALL SELECT a.manager_id, d.track_id FROM artist a JOIN deleted_track d ON d.kind = 3 AND d.subject = a.id
        WHERE NOT EXISTS (
            SELECT 1 FROM deleted_track o JOIN artist b ON b.id = o.subject
            WHERE o.kind = 3 AND o.track_id = d.track_id AND b.manager_id = a.manager_id AND b.id < a.id
        )) AS members""",
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
# The plays of an account with many tracks: to ask for each play takes less time than to search for each track.
PLAYS_OF_MANY = """account s CROSS JOIN play p WHERE s.id {among} AND (
    EXISTS (SELECT 1 FROM track_artist l JOIN artist a ON a.id = l.artist_id
            WHERE l.track_id = p.track_id AND a.manager_id = s.id)
    OR EXISTS (SELECT 1 FROM deleted_track d JOIN artist a ON a.id = d.subject
               WHERE d.kind = 3 AND d.track_id = p.track_id AND a.manager_id = s.id)
)"""
MANY = 1000  # tracks
SEVERAL = f"SELECT count(*) FROM (SELECT 1 FROM {TRACKS[ACCOUNT]} WHERE subject {{among}} LIMIT ?) AS first"  # noqa: S608 - ours
SUBJECTS = """
    SELECT t.id, t.duration, t.album_id, l.artist_id, a.manager_id
    FROM {given} CROSS JOIN track t
    LEFT JOIN track_artist l ON l.track_id = t.id LEFT JOIN artist a ON a.id = l.artist_id
    WHERE t.id = given.value
"""
DELETED = """
    SELECT d.track_id, d.kind, d.subject, d.duration, a.manager_id
    FROM deleted_track d LEFT JOIN artist a ON d.kind = 3 AND a.id = d.subject
    WHERE d.track_id {among} ORDER BY d.kind, d.subject
"""


class Subject(NamedTuple):
    """A track, album, artist or account: its kind (TRACK, ALBUM, ARTIST or ACCOUNT) and its database id."""

    kind: int
    id: int


def among(ids: Collection[int]) -> tuple[str, Any]:
    """Return an SQL condition that matches any of the ids, such as `= ?`, and the value of its placeholder."""
    if len(ids) != 1:
        return sql.in_list(ids)
    (only,) = ids
    return "= ?", only


def plays(kind: int, ids: Collection[int]) -> tuple[str, str]:
    """Return SQL for the subject of a play, and for the plays of some subjects, to put after FROM.

    The placeholder `{among}` is for the condition on their ids.
    """
    if kind == ACCOUNT:
        condition, value = among(ids)
        ((tracks,),) = fetch(SEVERAL.format(among=condition), value, MANY + 1)
        if tracks > MANY:
            return "s.id", PLAYS_OF_MANY
    return PLAYS[kind]


class PlayedTracks(NamedTuple):
    """Tracks by id: lengths in milliseconds (0 if unknown), albums, artists, and the accounts that manage these."""

    lengths: dict[int, int]
    albums: dict[int, int | None]
    artists: defaultdict[int, list[int]]
    accounts: defaultdict[int, set[int]]

    def subjects(self) -> dict[int, list[Subject]]:
        """Return what the plays of each track (by id) count for: the track, its album, its artists, their accounts."""
        found = {track: [Subject(TRACK, track)] for track in self.lengths}
        for track, album in self.albums.items():
            if album is not None:
                found[track].append(Subject(ALBUM, album))
            found[track] += [Subject(ARTIST, artist) for artist in self.artists[track]]
            found[track] += [Subject(ACCOUNT, account) for account in sorted(self.accounts[track])]
        return found


def of_tracks(tracks: Collection[int]) -> PlayedTracks:
    """Return the lengths, albums, artists and accounts of the tracks that exist, and of deleted ones with plays."""
    found = PlayedTracks({}, {}, defaultdict(list), defaultdict(set))
    if not tracks:  # SQLite refuses an empty array
        return found
    lengths, albums, artists, accounts = found
    given, ids = sql.table_of(sorted(tracks))  # sorted, which takes SQLite half the time
    for track, length, album, artist, account in fetch(SUBJECTS.format(given=given), ids):
        lengths[track] = length
        albums[track] = album
        if artist is not None:
            artists[track].append(artist)
        if account is not None:
            accounts[track].add(account)
    if len(lengths) < len(tracks):
        _add_deleted(found, [track for track in tracks if track not in lengths])
    return found


def _add_deleted(found: PlayedTracks, tracks: Collection[int]) -> None:
    condition, value = among(tracks)
    for track, kind, subject, length, account in fetch(DELETED.format(among=condition), value):
        if kind == TRACK:
            found.lengths[track], found.albums[track] = length, None
        elif kind == ALBUM:
            found.albums[track] = subject
        else:
            found.artists[track].append(subject)
            if account is not None:
                found.accounts[track].add(account)


def tracks_of(kind: int, ids: Collection[int]) -> list[int]:
    """Return the tracks of these albums, artists or accounts (`kind`), with the deleted ones that had plays."""
    condition, value = among(ids)
    statement = f"SELECT DISTINCT members.track_id FROM {TRACKS[kind]} WHERE subject {condition}"  # noqa: S608 - ours
    return [track for (track,) in fetch(statement, value)]
