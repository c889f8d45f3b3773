"""Build the JSON of the catalog, comments, playlists and accounts (docs/api.md, Public tier and token tier)."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from musicsvc.clock import isoformat
from musicsvc.server.shapes.envelope import JSON, Site
from musicsvc.store.accounts.user_search import UserSummary
from musicsvc.store.catalog import fields
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.changes import Changed
from musicsvc.store.catalog.genres import GenreRow
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.engagement.comments import CommentRow
from musicsvc.store.models import User
from musicsvc.store.playlists.invites import Received
from musicsvc.store.playlists.playlists import PlaylistRow


def duration_text(milliseconds: int) -> str:
    """Format a duration as `m:ss`, or as `h:mm:ss` if it is an hour or longer. Fractions of a second are dropped."""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours}:{rest:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Group(NamedTuple):
    """A group of keys: their names, where a row has their values in `details`, and the names of truth values."""

    names: Sequence[str]
    place: slice
    flags: Sequence[str]


def _groups(noun: str) -> Iterator[Group]:
    end = 0
    for shown in fields.groups(noun).values():
        start, end = end, end + len(shown)
        flags = [each.name for each in shown if each.kind == "yes or no"]
        yield Group([each.name for each in shown], slice(start, end), flags)


SOUND, SALE, LAST = _groups("track")
*_, LAST_OF_ALBUM = _groups("album")


def _add(shape: JSON, group: Group, details: Sequence[Any]) -> None:
    """Add the keys of a group to a shape. SQLite has numbers for truth values."""
    names, place, flags = group
    shape.update(zip(names, details[place]))  # noqa: B905 - checking the lengths takes longer than this
    for name in flags:
        shape[name] = None if shape[name] is None else bool(shape[name])


def artist_public(artist: ArtistRow) -> JSON:
    """Return an artist as shown to callers without a token."""
    return {"id": artist.id, "name": artist.name, "model_type": "artist"}


def artist_nested(artist: ArtistRow) -> JSON:
    """Return an artist as included in a track or album."""
    return {
        "id": artist.id,
        "name": artist.name,
        "image_small": artist.image_small,
        "verified": bool(artist.verified),
    }


def artist_full(artist: ArtistRow) -> JSON:
    return artist_nested(artist) | {
        "model_type": "artist",
        "created_at": isoformat(artist.created_at),
        "albums_count": artist.albums_count,
        "tracks_count": artist.tracks_count,
    }


def track_public(track: TrackRow) -> JSON:
    """Return a track as shown to callers without a token."""
    return {
        "id": track.id,
        "name": track.name,
        "image": track.image,
        "created_at": isoformat(track.created_at),
        "model_type": "track",
        "duration_text": duration_text(track.duration),
    }


def track_nested(track: TrackRow) -> JSON:
    """Return a track as included in an album, a collection or a list of collaborations."""
    return {
        "id": track.id,
        "name": track.name,
        "release_date": track.release_date,
        "image": track.image,
        "duration": track.duration,
        "description": track.description,
        "artists": [artist_nested(artist) for artist in track.artists],
    }


def track_full(track: TrackRow) -> JSON:
    shape = track_nested(track)
    shape["model_type"] = "track"
    shape["created_at"] = isoformat(track.created_at)
    shape["duration_text"] = duration_text(track.duration)
    _add(shape, SOUND, track.details)
    shape["plays"] = track.plays
    shape["likes_count"] = track.likes_count
    shape["reposts_count"] = track.reposts_count
    _add(shape, SALE, track.details)
    shape["genres"] = [genre(*each) for each in track.genres]
    shape["tags"] = [{"id": tag_id, "name": name} for tag_id, name in track.tags]
    shape["album_id"] = track.album_id
    _add(shape, LAST, track.details)
    return shape


def album_public(album: AlbumRow) -> JSON:
    """Return an album as shown to callers without a token."""
    return {
        "id": album.id,
        "name": album.name,
        "model_type": "album",
        "image": album.image,
        "release_date": album.release_date,
    }


def album_full(album: AlbumRow, parts: Collection[str] = ()) -> JSON:
    """Return an album as shown to callers with a token, with genres and tags if `parts` names them."""
    shape: JSON = {
        "id": album.id,
        "name": album.name,
        "image": album.image,
        "release_date": album.release_date,
        "description": album.description,
        "tracks": [track_nested(track) for track in album.tracks],
        "artists": [artist_nested(artist) for artist in album.artists],
        "model_type": "album",
        "created_at": isoformat(album.created_at),
        "plays": album.plays,
    }
    _add(shape, LAST_OF_ALBUM, album.details)
    if "genres" in parts:
        shape["genres"] = [genre(*each) for each in album.genres]
    if "tags" in parts:
        shape["tags"] = [{"id": tag_id, "name": name} for tag_id, name in album.tags]
    return shape


def genre(genre_id: int, name: str, display_name: str) -> JSON:
    return {"id": genre_id, "name": name, "display_name": display_name, "model_type": "genre"}


def genre_row(row: GenreRow) -> JSON:
    return genre(*row)


def change(row: Changed) -> JSON:
    return {"model_type": row.noun, "id": row.id, "change": row.change, "merged_into": row.into}


def comment(row: CommentRow, site: Site) -> JSON:
    """Return the JSON of a comment. The content of a deleted comment is empty, its author None without account."""
    return {
        "id": row.id,
        "content": "" if row.deleted else row.content,
        "position": row.position,
        "depth": row.depth,
        "deleted": bool(row.deleted),
        "user": None
        if row.user_id is None or row.display_name is None
        else user_summary(row.user_id, row.display_name, row.avatar, site),
    }


def playlist(row: PlaylistRow, site: Site) -> JSON:
    return {
        "id": row.id,
        "name": row.name,
        "public": bool(row.public),
        "collaborative": bool(row.collaborative),
        "image": row.image,
        "description": row.description,
        "model_type": "playlist",
        "created_at": isoformat(row.created_at),
        "tracks_count": row.tracks_count,
        "owner": user_summary(row.owner_id, row.owner_name, row.owner_avatar, site),
    }


def invitation(row: Received, site: Site) -> JSON:
    owner = row.playlist
    return {
        "playlist": playlist(owner, site),
        "inviter": user_summary(owner.owner_id, owner.owner_name, owner.owner_avatar, site),
        "created_at": isoformat(row.created_at),
        "expires_at": isoformat(row.expires_at),
    }


def account(user: UserSummary | User, site: Site) -> JSON:
    return user_summary(user.id, user.display_name, user.avatar, site)


def user_summary(user_id: int, display_name: str, avatar: str | None, site: Site) -> JSON:
    """Return the public fields of an account. If `avatar` is None, the avatar is the URL of a generated picture."""
    return {"id": user_id, "display_name": display_name, "avatar": avatar or f"{site.root}/avatars/{user_id}"}
