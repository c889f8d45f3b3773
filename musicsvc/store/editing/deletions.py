"""Delete tracks, albums and artists.

The plays of a deleted track stay and count for its album and artists as before, so that figures of past days do not
change. Likes and reposts end with it, since figures count those that still stand.
"""

from collections.abc import Mapping
from typing import Any

from musicsvc.errors import Conflict
from musicsvc.store.catalog import merged
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.editing import notices
from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine.sql import compiled, fetch, is_sqlite, run
from musicsvc.store.models import Album, Artist, Comment, DeletedTrack, Track, TrackPlays
from musicsvc.store.plays import counting, reattribution, subjects
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import quantity

FORGET = "DELETE FROM deleted_track WHERE kind = ? AND subject = ?"
ONLY_ARTIST = """
    SELECT count(*) FROM track_artist l WHERE l.artist_id = ?
    AND NOT EXISTS (SELECT 1 FROM track_artist o WHERE o.track_id = l.track_id AND o.artist_id <> l.artist_id)
"""
FIRST_ARTIST = """
    SELECT count(*) FROM album_artist l WHERE l.artist_id = ? AND NOT EXISTS (
        SELECT 1 FROM album_artist o WHERE o.album_id = l.album_id AND o.artist_id <> l.artist_id
        AND (o.position, o.artist_id) < (l.position, l.artist_id)
    )
"""
# Numbers of what a deletion concerns, by noun.
CONCERNED: Mapping[str, Mapping[str, str]] = {
    "track": {
        "comment": "SELECT count(*) FROM comment WHERE track_id = ?",
        "like": "SELECT count(*) FROM track_like WHERE track_id = ?",
        "repost": "SELECT count(*) FROM track_repost WHERE track_id = ?",
        "playlist": "SELECT count(DISTINCT playlist_id) FROM playlist_track WHERE track_id = ?",
        "collection": "SELECT count(DISTINCT collection_id) FROM collection_track WHERE track_id = ?",
    },
    "album": {"track": "SELECT count(*) FROM track WHERE album_id = ?"},
    "artist": {
        "track": "SELECT count(*) FROM track_artist WHERE artist_id = ?",
        "album": "SELECT count(*) FROM album_artist WHERE artist_id = ?",
    },
}


def count_concerned(noun: str, row_id: int) -> dict[str, str]:
    """Return the quantities of what the deletion of an artist, album or track concerns, and of its `plays`."""
    found = {each: fetch(query, row_id)[0][0] for each, query in CONCERNED[noun].items()}
    found["play"] = reader.all_time_plays(subjects.KINDS[noun], [row_id]).get(row_id, 0)
    return {f"{each}s": quantity(number, each) for each, number in found.items()}


def delete(row: ArtistRow | AlbumRow | TrackRow, *, now: int, account: int | None, actor: Actor) -> None:
    """Delete an artist, album or track, as the function for its kind does."""
    if isinstance(row, ArtistRow):
        delete_artist(row, now=now, account=account, actor=actor)
    elif isinstance(row, AlbumRow):
        delete_album(row, now=now, account=account, actor=actor)
    else:
        delete_track(row, now=now, account=account, actor=actor)


def delete_track(track: TrackRow, *, now: int, account: int | None, actor: Actor) -> None:
    """Delete a track with its comments, likes and reposts. It leaves all playlists and collections.

    `account`: the account that acts, None for the operator.
    """
    counting.lock()  # no play is reported meanwhile
    managers = notices.managers_of(TRACK, track.id)
    engagement_days.lock()
    _keep(track.id)
    engagement_days.forget(track.id)
    # A thread may be deeper than the 1,000 levels of SQLite's cascades.
    Comment.update(parent=None).where(Comment.track == track.id).execute()
    Track.delete().where(Track.id == track.id).execute()
    merged.forget(TRACK, track.id)
    about = f"track {track.id} ({track.name})"
    notices.log("track.deleted", about, managers, account=account, now=now, actor=actor)


def delete_album(album: AlbumRow, *, now: int, account: int | None, actor: Actor) -> None:
    """Delete an album. Its tracks stay, without an album. `account`: the account that acts, None for the operator."""
    managers = notices.managers_of(ALBUM, album.id)
    with reattribution.rebuilding(subjects.tracks_of(ALBUM, [album.id])):
        run(FORGET, ALBUM, album.id)
        Album.delete().where(Album.id == album.id).execute()
        merged.forget(ALBUM, album.id)
    about = f"album {album.id} ({album.name})"
    notices.log("album.deleted", about, managers, account=account, now=now, actor=actor)


def delete_artist(artist: ArtistRow, *, now: int, account: int | None, actor: Actor) -> None:
    """Delete an artist. Raises Conflict for the only artist of a track and for the first artist of an album.

    `account`: the account that acts, None for the operator.
    """
    counting.lock()
    if not is_sqlite():  # tracks and albums of this artist are added before or never
        fetch("SELECT id FROM artist WHERE id = ? FOR UPDATE", artist.id)
    require_unneeded(artist)
    managers = notices.managers_of(ARTIST, artist.id)
    with reattribution.rebuilding(subjects.tracks_of(ARTIST, [artist.id])):
        run(FORGET, ARTIST, artist.id)
        Artist.delete().where(Artist.id == artist.id).execute()
        merged.forget(ARTIST, artist.id)
    about = f"artist {artist.id} ({artist.name})"
    notices.log("artist.deleted", about, managers, account=account, now=now, actor=actor)


def require_unneeded(artist: ArtistRow) -> None:
    """Raise Conflict for the only artist of a track and for the first artist of an album."""
    ((only,),), ((first,),) = fetch(ONLY_ARTIST, artist.id), fetch(FIRST_ARTIST, artist.id)
    if only or first:
        needed = [f"the only artist of {quantity(only, 'track')}"] if only else []
        needed += [f"the first artist of {quantity(first, 'album')}"] if first else []
        raise Conflict(f"{artist.name} is {' and '.join(needed)}. Delete these first, or give them to other artists.")


@compiled
def _keep(track_id: int) -> Any:
    """Keep what the plays of a track count for, which is about to be deleted."""
    of = engagement_days.subjects().alias("of")
    query = Track.select(of.c.kind, of.c.subject, Track.id, Track.duration).join(of, on=(of.c.track_id == Track.id))
    played = query.join(TrackPlays, on=(TrackPlays.track == Track.id)).where(Track.id == track_id, of.c.kind > 0)
    return DeletedTrack.insert_from(
        played, [DeletedTrack.kind, DeletedTrack.subject, DeletedTrack.track, DeletedTrack.duration]
    )
