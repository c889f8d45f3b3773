"""Likes and reposts of tracks, and the counts that stand on the tracks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.store.models import Track, TrackLike, TrackRepost

if TYPE_CHECKING:
    from musicsvc.store.accounts.tokens import Identity

Kind = type[TrackLike] | type[TrackRepost]
# What handlers call the two; the tables stay the store's own.
LIKE: Kind = TrackLike
REPOST: Kind = TrackRepost
COUNTS = {TrackLike: Track.likes_count, TrackRepost: Track.reposts_count}


def give(kind: Kind, track_id: int, *, now: int, actor: Identity) -> None:
    """Let the caller like or repost the track; harmless when repeated."""
    query = kind.insert(track=track_id, user=actor.user_id, created_at=now).on_conflict_ignore()
    _count(kind, track_id, len(list(query.returning(kind.track).execute())))


def take(kind: Kind, track_id: int, *, actor: Identity) -> None:
    """Take the caller's like or repost back; harmless where there is none."""
    _count(kind, track_id, -kind.delete().where(kind.track == track_id, kind.user == actor.user_id).execute())


def _count(kind: Kind, track_id: int, change: int) -> None:
    """Move the track's count in the same transaction; the database adds, so that none of two at once is lost."""
    if change:
        Track.update({COUNTS[kind]: COUNTS[kind] + change}).where(Track.id == track_id).execute()
