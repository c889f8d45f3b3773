"""Delete tracks, albums and artists.

The plays of a deleted track stay and count for its album and artists as before, so that figures of past days do not
change. Likes and reposts end with it, since figures count those that still stand.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from peewee import Tuple, fn

from musicsvc.errors import Conflict, Forbidden
from musicsvc.store.accounts import users
from musicsvc.store.accounts.managing import managers_of
from musicsvc.store.catalog import albums, artists, merged, tracks
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.editing import notices
from musicsvc.store.engagement import comments, engagement_days
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
from musicsvc.store.plays.subjects import ALBUM, TRACK
from musicsvc.store.security.security_events import Actor, Kind
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
ROWS: Mapping[type, tuple[str, Callable[[int], object], Kind]] = {
    ArtistRow: ("artist", artists.get, "artist.deleted"),
    AlbumRow: ("album", albums.get, "album.deleted"),
    TrackRow: ("track", tracks.get, "track.deleted"),
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
    """Delete a track with its comments, likes and reposts, an album without its tracks, or an artist.

    `account`: the account that acts, None for the operator. Raises NotFound if another transaction has just deleted the
    row, Forbidden if it was handed over, Conflict for the only artist of a track and for the first artist of an album.
    """
    noun, get, event = ROWS[type(row)]
    counting.lock()  # no play is reported meanwhile
    if isinstance(row, ArtistRow):
        lock_artists(Artist.id == row.id)
    get(row.id)
    if isinstance(row, ArtistRow):
        require_unneeded(row)
    managers = managers_of(noun, row.id)
    if account is not None and account not in managers and not users.get(account).admin:
        raise Forbidden(f"You do not manage {noun} {row.id}.")
    if isinstance(row, TrackRow):
        remove_tracks([row.id])
    else:
        remove(subjects.KINDS[noun], [row.id])
    notices.log(event, f"{noun} {row.id} ({row.name})", managers, account=account, now=now, actor=actor)


def remove_tracks(ids: Sequence[int]) -> None:
    """Delete tracks, for a caller who holds the lock of `counting` and logs it."""
    engagement_days.lock()
    for some in batches(ids):
        _keep(some)
        engagement_days.forget(some)
        # A thread may be deeper than the 1,000 levels of SQLite's cascades.
        Comment.update(parent=None).where(Comment.track.in_(some), comments.IS_REPLY).execute()
        Track.delete().where(Track.id.in_(some)).execute()
        merged.forget(TRACK, some)


def remove(kind: int, ids: Sequence[int], *, forget: bool = True) -> None:
    """Delete albums or artists (`kind`), and which deleted tracks counted for them. The caller logs it.

    `forget`: also what was merged into them.
    """
    row: Any = Album if kind == ALBUM else Artist
    with reattribution.rebuilding(subjects.tracks_of(kind, ids) if ids else ()):
        for some in batches(ids):
            DeletedTrack.delete().where(DeletedTrack.kind == kind, DeletedTrack.subject.in_(some)).execute()
            row.delete().where(row.id.in_(some)).execute()
            if forget:
                merged.forget(kind, some)


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
