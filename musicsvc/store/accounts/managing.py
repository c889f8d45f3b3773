"""Managers of artists: everything that asks for them, asks here. They also manage the albums and tracks."""

from typing import Any

from musicsvc.store.models import AlbumArtist, Artist, TrackArtist


def managed_by(user_id: Any, artist: Any = Artist) -> Any:
    """Return the condition that the account manages the artist, or nobody (None). `artist`: `Artist`, or an alias."""
    return artist.manager.is_null() if user_id is None else artist.manager == user_id


def managed_by_others(user_id: Any, artist: Any = Artist) -> Any:
    """Return the condition that another account manages the artist, or nobody."""
    return artist.manager.is_null() | (artist.manager != user_id)


def managers_of(noun: str, number: int) -> set[int]:
    """Return the accounts that manage an `artist`, or the artists of an `album` or `track`."""
    query = Artist.select(Artist.manager).where(Artist.manager.is_null(is_null=False))
    credited = {"album": AlbumArtist.album, "track": TrackArtist.track}.get(noun)
    query = (
        query.where(Artist.id == number) if credited is None else query.join(credited.model).where(credited == number)
    )
    return {manager for (manager,) in query.tuples().iterator()}


def managed_ids(user_id: int) -> list[int]:
    """Return the ids of the artists that the account manages, oldest first."""
    query = Artist.select(Artist.id).where(managed_by(user_id)).order_by(Artist.id)
    return [number for (number,) in query.tuples().iterator()]
