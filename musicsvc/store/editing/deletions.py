"""Delete tracks, albums and artists.

The plays of a deleted track stay and count for its album and artists as before, so that figures of past days do not
change. Likes and reposts end with it, since figures count those that still stand.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from peewee import Tuple, fn

from musicsvc.errors import Conflict
from musicsvc.store.accounts.managing import managers_of
from musicsvc.store.catalog import albums, artists, merged, tracks
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.editing import notices
from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine.sql import batches, compiled, lock_rows
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    CollectionTrack,
    Comment,
    DeletedTrack,
    PlaylistTrack,
    Track,
    TrackArtist,
    TrackLike,
    TrackPlays,
    TrackRepost,
)
from musicsvc.store.plays import counting, reattribution, subjects
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import quantity

# Rows that a deletion concerns, by noun: their column that refers to the deleted row, and the one to count.
CONCERNED: Mapping[str, Mapping[str, tuple[Any, Any]]] = {
    "track": {
        "comment": (Comment.track, Comment.id),
        "like": (TrackLike.track, TrackLike.user),
        "repost": (TrackRepost.track, TrackRepost.user),
        "playlist": (PlaylistTrack.track, PlaylistTrack.playlist),
        "collection": (CollectionTrack.track, CollectionTrack.collection),
    },
    "album": {"track": (Track.album, Track.id)},
    "artist": {"track": (TrackArtist.artist, TrackArtist.track), "album": (AlbumArtist.artist, AlbumArtist.album)},
}


def count_concerned(noun: str, row_id: int) -> dict[str, str]:
    """Return the quantities of what the deletion of an artist, album or track concerns, and of its `plays`."""
    found: dict[str, int] = {
        each: owner.model.select(fn.COUNT(fn.DISTINCT(counted))).where(owner == row_id).scalar()
        for each, (owner, counted) in CONCERNED[noun].items()
    }
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
    tracks.get(track.id)  # not found if another transaction has just deleted it
    managers = managers_of("track", track.id)
    remove_tracks([track.id])
    about = f"track {track.id} ({track.name})"
    notices.log("track.deleted", about, managers, account=account, now=now, actor=actor)


def remove_tracks(ids: Sequence[int]) -> None:
    """Delete tracks, for a caller who holds the lock of `counting` and logs it."""
    engagement_days.lock()
    for some in batches(ids):
        _keep(some)
        engagement_days.forget(some)
        # A thread may be deeper than the 1,000 levels of SQLite's cascades.
        Comment.update(parent=None).where(Comment.track.in_(some)).execute()
        Track.delete().where(Track.id.in_(some)).execute()
        merged.forget(TRACK, some)


def delete_album(album: AlbumRow, *, now: int, account: int | None, actor: Actor) -> None:
    """Delete an album. Its tracks stay, without an album. `account`: the account that acts, None for the operator."""
    counting.lock()
    albums.get(album.id)
    managers = managers_of("album", album.id)
    remove(ALBUM, [album.id])
    about = f"album {album.id} ({album.name})"
    notices.log("album.deleted", about, managers, account=account, now=now, actor=actor)


def remove(kind: int, ids: Sequence[int]) -> None:
    """Delete albums or artists (`kind`), and which deleted tracks counted for them. The caller logs it."""
    row: Any = Album if kind == ALBUM else Artist
    with reattribution.rebuilding(subjects.tracks_of(kind, ids) if ids else ()):
        for some in batches(ids):
            DeletedTrack.delete().where(DeletedTrack.kind == kind, DeletedTrack.subject.in_(some)).execute()
            row.delete().where(row.id.in_(some)).execute()
            merged.forget(kind, some)


def delete_artist(artist: ArtistRow, *, now: int, account: int | None, actor: Actor) -> None:
    """Delete an artist. Raises Conflict for the only artist of a track and for the first artist of an album.

    `account`: the account that acts, None for the operator.
    """
    counting.lock()
    lock_artists(Artist.id == artist.id)
    artists.get(artist.id)
    require_unneeded(artist)
    managers = managers_of("artist", artist.id)
    remove(ARTIST, [artist.id])
    about = f"artist {artist.id} ({artist.name})"
    notices.log("artist.deleted", about, managers, account=account, now=now, actor=actor)


def lock_artists(condition: Any) -> None:
    """Lock artists that will be deleted: their tracks and albums are added before or never."""
    lock_rows(Artist.select(Artist.id).where(condition).order_by(Artist.id), deleting=True).execute()


def require_unneeded(artist: ArtistRow) -> None:
    """Raise Conflict for the only artist of a track and for the first artist of an album."""
    beside = TrackArtist.alias()
    others = beside.select(beside.artist).where(beside.track == TrackArtist.track, beside.artist != artist.id)
    only = TrackArtist.select().where(TrackArtist.artist == artist.id, ~fn.EXISTS(others)).count()
    before = AlbumArtist.alias()
    is_before = Tuple(before.position, before.artist) < Tuple(AlbumArtist.position, AlbumArtist.artist)
    earlier = before.select(before.artist).where(before.album == AlbumArtist.album, is_before)
    first = AlbumArtist.select().where(AlbumArtist.artist == artist.id, ~fn.EXISTS(earlier)).count()
    if only or first:
        needed = [f"the only artist of {quantity(only, 'track')}"] if only else []
        needed += [f"the first artist of {quantity(first, 'album')}"] if first else []
        raise Conflict(f"{artist.name} is {' and '.join(needed)}. Delete these first, or give them to other artists.")


@compiled
def _keep(tracks: Collection[int]) -> Any:
    """Keep what the plays of tracks count for, which are about to be deleted."""
    of = engagement_days.subjects().alias("of")
    query = Track.select(of.c.kind, of.c.subject, Track.id, Track.duration).join(of, on=(of.c.track_id == Track.id))
    # The tracks are named twice: of the list PostgreSQL concludes nothing for the other side of the join.
    chosen = Track.id.in_(tracks), of.c.track_id.in_(tracks), of.c.kind > 0
    played = query.join(TrackPlays, on=(TrackPlays.track == Track.id)).where(*chosen)
    return DeletedTrack.insert_from(
        played, [DeletedTrack.kind, DeletedTrack.subject, DeletedTrack.track, DeletedTrack.duration]
    )
