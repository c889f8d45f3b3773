"""Create artists, albums and tracks from values of the fields of the API."""

from collections.abc import Callable, Mapping
from typing import Any

from musicsvc.store.accounts.callers import Caller
from musicsvc.store.catalog import albums, artists, names, tracks
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.tracks import TrackRow


def create_artist(values: Mapping[str, Any], *, now: int, actor: Caller) -> ArtistRow:
    return artists.create(**values, now=now, actor=actor)


def ensure_artist(name: str, *, now: int, actor: Caller) -> str:
    """Create an artist, unless the actor manages one with this name. Return the name with its id."""
    found = names.find_managed("artist", name, actor.user_id)
    return names.with_id(name, artists.create(name, now=now, actor=actor).id) if found is None else str(found)


def create_album(values: Mapping[str, Any], *, now: int, actor: Caller) -> AlbumRow:
    """Create an album. Raises Forbidden if the actor does not manage the artist."""
    columns = dict(values)
    return albums.create(columns, columns.pop("artist_id"), columns.pop("tags", ()), now=now, actor=actor)


def create_track(values: Mapping[str, Any], *, now: int, actor: Caller) -> TrackRow:
    """Create a track. Raises Forbidden if the actor manages none of its artists, or not its album."""
    columns = dict(values)
    if (album := columns.get("album_id")) is not None:
        albums.require_managed(album, actor=actor)
    credit, genre, tags = columns.pop("artists"), columns.pop("genre", None), columns.pop("tags", ())
    return tracks.create(columns, credit, genre=genre, tag_names=tags, now=now, actor=actor)


CREATE: Mapping[str, Callable[..., ArtistRow | AlbumRow | TrackRow]] = {
    "artist": create_artist,
    "album": create_album,
    "track": create_track,
}
