"""Add and remove likes and reposts of tracks, and update their total and daily counts."""

from typing import Any

from musicsvc.clock import DAY
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine.sql import compiled
from musicsvc.store.engine.tables import counting
from musicsvc.store.models import Track, TrackLike, TrackRepost

Kind = type[TrackLike] | type[TrackRepost]
# For handlers, which do not import the models.
LIKE: Kind = TrackLike
REPOST: Kind = TrackRepost
COUNTS = {TrackLike: Track.likes_count, TrackRepost: Track.reposts_count}
NAMES = {TrackLike: "likes", TrackRepost: "reposts"}


def add(kind: Kind, track_id: int, *, now: int, actor: Identity) -> None:
    """Add the actor's like or repost of the track, unless it exists."""
    engagement_days.lock(shared=True)  # before the track's row, in the order of an import
    if _insert(track_id, actor.user_id, now, kind=kind):
        _add(kind, track_id, now, 1)


def remove(kind: Kind, track_id: int, *, actor: Identity) -> None:
    """Remove the actor's like or repost of the track, if it exists."""
    engagement_days.lock(shared=True)
    for (given_at,) in _delete(track_id, actor.user_id, kind=kind):
        _add(kind, track_id, given_at, -1)


def remove_all(user_id: int) -> None:
    """Remove all likes and reposts of an account. The caller must hold the lock `engagement_days.lock`."""
    for kind in (LIKE, REPOST):
        given = sorted(_delete_all(user_id, kind=kind))
        with counting():
            _uncount.many([(track_id,) for track_id, _ in given], kind=kind)
        engagement_days.subtract([(track_id, at // DAY, kind is LIKE, kind is REPOST) for track_id, at in given])


def _add(kind: Kind, track_id: int, given_at: int, change: int) -> None:
    with counting():
        _count(track_id, change, kind=kind)
    engagement_days.add(track_id, given_at, **{NAMES[kind]: change})


@compiled
def _insert(track_id: int, user_id: int, now: int, *, kind: Kind) -> Any:
    return kind.insert(track=track_id, user=user_id, created_at=now).on_conflict_ignore().returning(kind.track)


@compiled
def _delete(track_id: int, user_id: int, *, kind: Kind) -> Any:
    return kind.delete().where(kind.track == track_id, kind.user == user_id).returning(kind.created_at)


@compiled
def _delete_all(user_id: int, *, kind: Kind) -> Any:
    return kind.delete().where(kind.user == user_id).returning(kind.track, kind.created_at)


@compiled
def _count(track_id: int, change: int, *, kind: Kind) -> Any:
    """Add `change` to the track's number of likes or reposts, in one SQL statement to allow concurrent changes."""
    return Track.update({COUNTS[kind]: COUNTS[kind] + change}).where(Track.id == track_id).returning(Track.id)


@compiled
def _uncount(track_id: int, *, kind: Kind) -> Any:
    """Subtract one, without returning a row: SQLite's driver runs such a statement only for the rows that are read."""
    return Track.update({COUNTS[kind]: COUNTS[kind] - 1}).where(Track.id == track_id)
