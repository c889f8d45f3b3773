"""Create and load albums with their artists, tracks, genres and tags."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from peewee import fn

from musicsvc.errors import Forbidden, first
from musicsvc.store.accounts.callers import Caller
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.catalog import artists, fields, genres, merged, tracks
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.engine import bulk, list_blocks, sql
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, columns, paginate
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    AlbumTag,
    Artist,
    DeletedTrack,
    Genre,
    Tag,
    Track,
    TrackGenre,
    TrackPlays,
    TrackTag,
)


@dataclass(slots=True)
class AlbumRow:
    """An album. Artists, tracks, genres and tags are empty until they are loaded by separate functions."""

    id: int
    name: str
    image: str | None
    release_date: str | None
    description: str | None
    created_at: int
    plays_of_deleted: int  # tracks, which still count
    details: Sequence[Any] = ()  # values of further fields (`fields.groups`)
    artists: Iterable[ArtistRow] = ()
    tracks: Sequence[TrackRow] = ()
    genres: list[tuple[int, str, str]] = field(default_factory=list)  # (id, slug, display name)
    tags: list[tuple[int, str]] = field(default_factory=list)  # (id, name)

    @property
    def plays(self) -> int:
        """The total number of plays of the album's tracks, as in its figures."""
        return self.plays_of_deleted + sum(track.plays for track in self.tracks)


DELETED = DeletedTrack.select(fn.COALESCE(fn.SUM(TrackPlays.plays), 0).cast("bigint"))
DELETED = DELETED.join(TrackPlays, on=(TrackPlays.track == DeletedTrack.track))
DELETED = DELETED.where(DeletedTrack.kind == merged.ALBUM, DeletedTrack.subject == Album.id)
OWN = columns(AlbumRow, Album, plays_of_deleted=DELETED)
COLUMNS = (*OWN, *fields.details("album", Album))


def _row(*values: Any) -> AlbumRow:
    """Return the album with these values of COLUMNS."""
    return AlbumRow(*(*values[: len(OWN)], values[len(OWN) :]))


def get(album_id: int) -> AlbumRow:
    """Return the album without artists and tracks. Raises NotFound."""
    return _row(*first(_by_id(album_id), "There is no such album."))


@compiled
def _by_id(album_id: int) -> Any:
    return Album.select(*COLUMNS).where(Album.id == album_id)


def find(ids: Sequence[int]) -> list[AlbumRow]:
    """Return the albums with these ids, in the order of `ids`, without artists and tracks. All albums must exist."""
    known = {row[0]: _row(*row) for row in _by_ids(ids)} if ids else {}
    return [known[album_id] for album_id in ids]


@compiled
def _by_ids(ids: Collection[int]) -> Any:
    return Album.select(*COLUMNS).where(Album.id.in_(ids))


def list_all(page: Page) -> Listing[AlbumRow]:
    """Return all albums, newest first."""
    return paginate(_all, page, _row, counted=list_blocks.ALBUMS)


def _all() -> ListQuery:
    return ListQuery(Album.select(Album.id), Album.select(*COLUMNS), [Album.id.desc()])


def list_by_artist(artist_id: int, page: Page) -> Listing[AlbumRow]:
    """Return the artist's albums, newest release first. Albums without a release date come last."""
    return paginate(_by_artist, page, _row, artist_id, counted=list_blocks.ARTIST_ALBUMS)


def _by_artist(artist_id: int) -> ListQuery:
    keys = Album.select(Album.id).join(AlbumArtist).where(AlbumArtist.artist == artist_id)
    order = (Album.release_date.desc(nulls="LAST"), Album.id.desc())
    return ListQuery(keys, Album.select(*COLUMNS), order)


def with_contents(rows: Sequence[AlbumRow]) -> Sequence[AlbumRow]:
    """Return copies of the rows with their artists and tracks. The given rows are not changed."""
    if not rows:
        return rows
    ids = [row.id for row in rows]
    credit = artists.of_albums(ids)
    contents = tracks.load_by_album(ids)
    return [replace(row, artists=credit.get(row.id, ()), tracks=contents.get(row.id, ())) for row in rows]


def with_labels(row: AlbumRow, parts: Collection[str]) -> AlbumRow:
    """Set `genres` and `tags` of the row, if named in `parts`. Genres and tags of the album's tracks are included."""
    if "genres" in parts:
        row.genres = sorted(_genres(row.id))
    if "tags" in parts:
        row.tags = sorted({*_tags(row.id), *_tags_of_tracks(row.id)})
    return row


@compiled
def _genres(album_id: int) -> Any:
    genres = Genre.select(Genre.id, Genre.name, Genre.display_name).distinct().join(TrackGenre)
    return genres.join(Track, on=(TrackGenre.track == Track.id)).where(Track.album == album_id)


@compiled
def _tags(album_id: int) -> Any:
    return Tag.select(Tag.id, Tag.name).join(AlbumTag).where(AlbumTag.album == album_id)


@compiled
def _tags_of_tracks(album_id: int) -> Any:
    tags = Tag.select(Tag.id, Tag.name).distinct().join(TrackTag)
    return tags.join(Track, on=(TrackTag.track == Track.id)).where(Track.album == album_id)


def require_managed(album_id: int, *, actor: Caller) -> None:
    """Raise Forbidden unless the actor manages one of the album's artists."""
    query = AlbumArtist.select().join(Artist).where(AlbumArtist.album == album_id, managed_by(actor.user_id))
    if not query.exists():
        raise Forbidden("You do not manage this album.")


def missing(ids: Collection[int]) -> set[int]:
    return sql.missing(ids, Album)


def create(values: Mapping[str, Any], artist_id: int, tag_names: Iterable[str], *, now: int, actor: Caller) -> AlbumRow:
    """Create an album of one artist. Raises Forbidden if the actor does not manage the artist."""
    if not artists.managed([artist_id], actor=actor):
        raise Forbidden(artists.NOT_MANAGED)
    album_id = Album.create(**values, created_at=now).id
    bulk.link(AlbumArtist, album_id, [artist_id])
    bulk.link(AlbumTag, album_id, genres.ensure_tags(tag_names).values())
    return with_contents([get(album_id)])[0]
