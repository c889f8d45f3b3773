"""Add and remove likes and reposts of tracks, and update their totals in the track table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.store.models import Track, TrackLike, TrackRepost

if TYPE_CHECKING:
    from musicsvc.store.accounts.tokens import Identity

Kind = type[TrackLike] | type[TrackRepost]
# For handlers, which do not import the models.
LIKE: Kind = TrackLike
REPOST: Kind = TrackRepost
COUNTS = {TrackLike: Track.likes_count, TrackRepost: Track.reposts_count}


def add(kind: Kind, track_id: int, *, now: int, actor: Identity) -> None:
    """Add the actor's like or repost of the track, unless it exists."""
    query = kind.insert(track=track_id, user=actor.user_id, created_at=now).on_conflict_ignore()
    _count(kind, track_id, len(list(query.returning(kind.track).execute())))


def remove(kind: Kind, track_id: int, *, actor: Identity) -> None:
    """Remove the actor's like or repost of the track, if it exists."""
    _count(kind, track_id, -kind.delete().where(kind.track == track_id, kind.user == actor.user_id).execute())


def _count(kind: Kind, track_id: int, change: int) -> None:
    """Add `change` to the track's number of likes or reposts, in one SQL statement to allow concurrent changes."""
    if change:
        Track.update({COUNTS[kind]: COUNTS[kind] + change}).where(Track.id == track_id).execute()
