"""Conditions and queries for what accounts manage, and for the tracks and albums of albums and artists."""

from collections.abc import Collection, Mapping
from typing import Any

from peewee import fn

from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

ROWS: Mapping[int, Any] = {TRACK: Track, ALBUM: Album, ARTIST: Artist}
# Fields with the id of a track or album, in the tables that credit artists.
CREDITED: Mapping[int, Any] = {TRACK: TrackArtist.track, ALBUM: AlbumArtist.album}
# What belongs to a track, album or artist, by its kind and the kind of what belongs: fields with both ids.
MEMBERS: Mapping[tuple[int, int], tuple[Any, Any]] = {
    (TRACK, TRACK): (Track.id, Track.id),
    (ALBUM, TRACK): (Track.album, Track.id),
    (ALBUM, ALBUM): (Album.id, Album.id),
    (ARTIST, TRACK): (TrackArtist.artist, TrackArtist.track),
    (ARTIST, ALBUM): (AlbumArtist.artist, AlbumArtist.album),
}


def members(owner: Any, kind: int, of: int) -> Any:
    """Return a query for the ids of the tracks or albums (`of`) of a track, album or artist (`kind`)."""
    key, member = MEMBERS[kind, of]
    return member.model.select(member).where(key == owner)


def is_managed(kind: int, subject: Any, user_id: Any) -> Any:
    """Return the condition that the account manages a track, album or artist, or one of its artists."""
    if kind == ARTIST:
        artist = Artist.alias()
        return fn.EXISTS(artist.select(artist.id).where(artist.id == subject, managed_by(user_id, artist)))
    credited = CREDITED[kind]
    query = credited.model.select(credited).join(Artist)
    return fn.EXISTS(query.where(credited == subject, managed_by(user_id)))


@compiled
def managed(ids: Collection[int], user_id: int, *, kind: int) -> Any:
    """Select those of the ids of tracks, albums or artists that the account manages."""
    row = ROWS[kind]
    return row.select(row.id).where(row.id.in_(ids), is_managed(kind, row.id, user_id))
