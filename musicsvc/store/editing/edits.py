"""Change tracks, albums and artists. Figures follow: plays count for the new album and artists of a track."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from musicsvc.errors import Forbidden, Invalid
from musicsvc.store.accounts.callers import Caller
from musicsvc.store.catalog import album_sizes, albums, artists, genres, identifiers, tracks
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.editing import notices
from musicsvc.store.engine import bulk
from musicsvc.store.models import Album, AlbumArtist, AlbumTag, Artist, Track, TrackArtist, TrackGenre, TrackTag
from musicsvc.store.plays import reattribution
from musicsvc.store.security.security_events import Actor

ANOTHERS = "You manage none of the artists of this track."
MOVING = {"album_id", "artists", "duration"}  # fields on which play counts depend


def find_track(track_id: int, *, actor: Caller) -> TrackRow:
    """Return the track. Raises NotFound, or Forbidden unless the actor manages one of its artists."""
    track = tracks.get(track_id)
    if not artists.managed([artist.id for artist in track.artists], actor=actor):
        tracks.get(track_id)  # not found if it was deleted after the first read
        raise Forbidden(ANOTHERS)
    return track


def find_album(album_id: int, *, actor: Caller) -> AlbumRow:
    """Return the album. Raises NotFound, or Forbidden unless the actor manages one of its artists."""
    album = albums.get(album_id)
    try:
        albums.require_managed(album_id, actor=actor)
    except Forbidden:
        albums.get(album_id)
        raise
    return album


def find_artist(artist_id: int, *, actor: Caller) -> ArtistRow:
    """Return the artist. Raises NotFound, or Forbidden unless the actor manages the artist."""
    artist = artists.get(artist_id)
    if not artists.managed([artist_id], actor=actor):
        artists.get(artist_id)
        raise Forbidden(artists.NOT_MANAGED)
    return artist


def edit(
    row: ArtistRow | AlbumRow | TrackRow,
    changes: Mapping[str, Any],
    *,
    now: int,
    caller: Caller | None = None,
    actor: Actor = "cli",
) -> None:
    """Change fields of an artist, album or track, as the function for its kind does."""
    match row:
        case ArtistRow():
            edit_artist(row, changes, now=now)
        case AlbumRow():
            edit_album(row, changes, now=now, caller=caller, actor=actor)
        case TrackRow():
            edit_track(row, changes, now=now, caller=caller, actor=actor)


def edit_track(
    track: TrackRow, changes: Mapping[str, Any], *, now: int, caller: Caller | None = None, actor: Actor = "cli"
) -> TrackRow:
    """Change the fields in `changes`, named as in the API. Return the track. Without `caller`, no right is checked.

    Raises Forbidden for an album or artists of others, Invalid for an ISRC in use and for an album that is too large.
    """
    values = dict(changes)
    credit: Sequence[int] | None = values.pop("artists", None)
    _check_rights(credit, values.get("album_id"), caller)
    if values.get("isrc") is not None:
        _require_free(values["isrc"], track)
    labels = {name: values.pop(name) for name in ("genre", "tags") if name in values}
    album_id = values.get("album_id", track.album_id)
    with reattribution.rebuilding([track.id] if MOVING & changes.keys() else []):
        if album_id is not None:
            album_sizes.lock_album(album_id)
        Track.update(**values, edited_at=now).where(Track.id == track.id).execute()
        if credit is not None:
            _credit(track, credit, caller, now, actor)
    if "genre" in labels:
        named = [labels["genre"]] if labels["genre"] is not None else []
        bulk.relink(TrackGenre, track.id, genres.ensure(named).values())
    if "tags" in labels:
        bulk.relink(TrackTag, track.id, genres.ensure_tags(labels["tags"] or ()).values())
    if album_id is not None:
        album_sizes.require_within_limits(album_id, "album_id" if "album_id" in changes else "description")
    return tracks.get(track.id)


def edit_album(
    album: AlbumRow, changes: Mapping[str, Any], *, now: int, caller: Caller | None = None, actor: Actor = "cli"
) -> AlbumRow:
    """Change the fields in `changes`, named as in the API. Return the album. Without `caller`, no right is checked.

    Raises Forbidden for an artist of others, Invalid if the album is too large then.
    """
    values = dict(changes)
    first: int | None = values.pop("artist_id", None)
    album_sizes.lock_album(album.id)  # no other change replaces its artists or tags meanwhile
    if first is not None:
        _set_first_artist(album, first, caller, now, actor)
    if "tags" in values:
        bulk.relink(AlbumTag, album.id, genres.ensure_tags(values.pop("tags") or ()).values())
    Album.update(**values, edited_at=now).where(Album.id == album.id).execute()
    album_sizes.require_within_limits(album.id, "description")
    return albums.with_contents([albums.get(album.id)])[0]


def edit_artist(artist: ArtistRow, changes: Mapping[str, Any], *, now: int) -> ArtistRow:
    """Change the fields in `changes`, named as in the API. Return the artist. Raises Invalid if an album is too large.

    The JSON of each album with the artist contains the artist's name and image.
    """
    Artist.update(**changes, edited_at=now).where(Artist.id == artist.id).execute()
    edited = artists.get(artist.id)
    if album_sizes.of_artist(edited.name, edited.image_small) > album_sizes.of_artist(artist.name, artist.image_small):
        field = "image_small" if edited.image_small != artist.image_small else "name"
        if excess := album_sizes.excess(album_sizes.with_artist(artist.id)):
            raise Invalid({field: excess})
    return edited


def _credit(track: TrackRow, credit: Sequence[int], caller: Caller | None, now: int, actor: Actor) -> None:
    """Replace the artists of a track. Managers of those that go learn of it."""
    before = [artist.id for artist in artists.of_tracks([track.id]).get(track.id, ())]
    bulk.relink(TrackArtist, track.id, credit)
    _log_lost("track", track, {*before} - {*credit}, caller, now, actor)


def _set_first_artist(album: AlbumRow, artist_id: int, caller: Caller | None, now: int, actor: Actor) -> None:
    """Replace the first artist of an album. Raises Forbidden unless the caller manages the new one."""
    if caller is not None and not artists.managed([artist_id], actor=caller):
        raise Forbidden(artists.NOT_MANAGED)
    before = [artist.id for artist in artists.of_albums([album.id]).get(album.id, ())]
    after = [artist_id, *(each for each in before[1:] if each != artist_id)]
    bulk.relink(AlbumArtist, album.id, after)
    _log_lost("album", album, {*before} - {*after}, caller, now, actor)


def _log_lost(
    noun: str, row: AlbumRow | TrackRow, lost: Collection[int], caller: Caller | None, now: int, actor: Actor
) -> None:
    account = None if caller is None else caller.user_id
    notices.log_uncredited(noun, f"{noun} {row.id} ({row.name})", lost, account=account, now=now, actor=actor)


def _check_rights(credit: Sequence[int] | None, album_id: int | None, caller: Caller | None) -> None:
    if caller is None:
        return
    if credit is not None and not artists.managed(credit, actor=caller):
        raise Forbidden(tracks.NONE_MANAGED)
    if album_id is not None:
        albums.require_managed(album_id, actor=caller)


def _require_free(isrc: str, track: TrackRow) -> None:
    """Raise Invalid if a manager of the track's artists has another track with this ISRC."""
    identifiers.lock()
    for manager in {artist.manager_id for artist in track.artists}:
        if identifiers.tracks_by_isrc([isrc], manager, besides=track.id):
            raise Invalid({"isrc": identifiers.IN_USE})
