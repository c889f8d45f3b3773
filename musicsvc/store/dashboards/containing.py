"""Count what contains a track, album or artist: playlists, collections and likes of this service."""

from typing import NamedTuple

from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

MOST_NAMES = 20
TRACKS = {
    TRACK: "SELECT id FROM track WHERE id = ?",
    ALBUM: "SELECT id FROM track WHERE album_id = ?",
    ARTIST: "SELECT track_id FROM track_artist WHERE artist_id = ?",
}
COUNTS = {
    kind: f"""
        WITH chosen (id) AS ({tracks})
        SELECT (SELECT COUNT(DISTINCT l.playlist_id) FROM playlist_track l JOIN chosen c ON c.id = l.track_id),
               (SELECT COUNT(DISTINCT l.playlist_id) FROM playlist_track l JOIN chosen c ON c.id = l.track_id
                JOIN playlist p ON p.id = l.playlist_id WHERE p.public),
               (SELECT COUNT(DISTINCT l.collection_id) FROM collection_track l JOIN chosen c ON c.id = l.track_id),
               (SELECT COALESCE(SUM(t.likes_count), 0) FROM track t JOIN chosen c ON c.id = t.id)
    """  # noqa: S608 - our own statements
    for kind, tracks in TRACKS.items()
}
PUBLIC = """
    SELECT p.name FROM playlist p WHERE p.public
    AND p.id IN (SELECT playlist_id FROM playlist_track WHERE track_id = ?) ORDER BY p.id DESC LIMIT ?
"""


class Containing(NamedTuple):
    """Numbers of playlists, of public ones among them, of collections, and of likes that were not withdrawn.

    Of an album or artist, all that contain one of its tracks. `names`: those of the newest public playlists that
    contain a track; of others nothing but their number is shown.
    """

    playlists: int
    public: int
    collections: int
    likes: int
    names: tuple[str, ...] = ()


def load(subject: Subject) -> Containing:
    """Return what contains a track, album or artist."""
    ((playlists, public, collections, likes),) = fetch(COUNTS[subject.kind], subject.id)
    found = Containing(playlists, public, collections, int(likes))
    if subject.kind != TRACK:
        return found
    return found._replace(names=tuple(name for (name,) in fetch(PUBLIC, subject.id, MOST_NAMES)))
