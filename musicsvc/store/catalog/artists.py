"""Create, load and verify artists."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from peewee import fn

from musicsvc.errors import first
from musicsvc.store.accounts.callers import Caller
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.engine import list_blocks, sql
from musicsvc.store.engine.list_blocks import LongList
from musicsvc.store.engine.name_index import ARTISTS
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, columns, paginate
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import AlbumArtist, Artist, ListBlock, Track, TrackArtist
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Kind


@dataclass(slots=True)
class ArtistRow:
    id: int
    name: str
    image_small: str | None
    verified: bool
    manager_id: int | None
    created_at: int
    albums_count: int = 0
    tracks_count: int = 0


COLUMNS = columns(ArtistRow, Artist)
NOT_MANAGED = "You do not manage this artist."


def _counts() -> tuple[Any, Any]:
    albums = AlbumArtist.select(fn.COUNT(AlbumArtist.album)).where(AlbumArtist.artist == Artist.id)
    tracks = TrackArtist.select(fn.COUNT(TrackArtist.track)).where(TrackArtist.artist == Artist.id)
    return _count(list_blocks.ARTIST_ALBUMS, albums), _count(list_blocks.ARTIST_TRACKS, tracks)


def _count(counted: LongList, rows: Any) -> Any:
    """Return SQL for the length of an artist's list: stored for a long list, otherwise counted by the query `rows`."""
    blocks = ListBlock.select(fn.SUM(ListBlock.size).cast("bigint"))
    return fn.COALESCE(blocks.where(ListBlock.list == counted.number, ListBlock.owner == Artist.id), rows)


def get(artist_id: int) -> ArtistRow:
    """Return the artist. Raises `NotFound`."""
    return ArtistRow(*first(_by_id(artist_id), "There is no such artist."))


@compiled
def _by_id(artist_id: int) -> Any:
    return Artist.select(*COLUMNS, *_counts()).where(Artist.id == artist_id)


def find(ids: Sequence[int]) -> list[ArtistRow]:
    """Return the artists with these ids, in the order of `ids`. All of these artists must exist."""
    known = {row[0]: ArtistRow(*row) for row in _by_ids(ids)} if ids else {}
    return [known[artist_id] for artist_id in ids]


@compiled
def _by_ids(ids: Collection[int]) -> Any:
    return Artist.select(*COLUMNS, *_counts()).where(Artist.id.in_(ids))


def list_all(page: Page) -> Listing[ArtistRow]:
    """Return all artists, newest first."""
    return paginate(_all, page, ArtistRow, counted=list_blocks.ARTISTS)


def _all() -> ListQuery:
    return ListQuery(Artist.select(Artist.id), Artist.select(*COLUMNS, *_counts()), [Artist.id.desc()])


def list_managed(user_id: int, page: Page) -> Listing[ArtistRow]:
    """Return the artists that the account manages, newest first."""
    return paginate(_of_manager, page, ArtistRow, user_id, counted=None)


def _of_manager(user_id: int) -> ListQuery:
    keys = Artist.select(Artist.id).where(managed_by(user_id))
    return ListQuery(keys, Artist.select(*COLUMNS, *_counts()), [Artist.id.desc()])


def find_named(text: str, page: Page) -> Listing[ArtistRow]:
    """Return the artists whose names contain the text, newest first."""
    ids, total = ARTISTS.newest(text, page.size, page.offset)
    return Listing(ids, total, page, lambda some: find([*some]))


def missing(ids: Collection[int]) -> set[int]:
    return sql.missing(ids, Artist)


def managed(ids: Collection[int], *, actor: Caller) -> set[int]:
    return {row[0] for row in _managed(ids, actor.user_id)}


@compiled
def _managed(ids: Collection[int], user_id: int) -> Any:
    return Artist.select(Artist.id).where(Artist.id.in_(ids), managed_by(user_id))


def manages_any(user_id: int) -> bool:
    return Artist.select().where(managed_by(user_id)).exists()


def create(
    name: str,
    description: str | None = None,
    image_small: str | None = None,
    *,
    now: int,
    actor: Caller,
    **columns: Any,
) -> ArtistRow:
    """Create an artist that is managed by the actor and not verified. `columns`: values of further columns."""
    columns |= {"name": name, "description": description, "image_small": image_small}
    artist = Artist.create(**columns, manager=actor.user_id, created_at=now)
    return get(artist.id)


def about(artist: ArtistRow) -> str:
    """Return the id and the name of an artist, for a security event."""
    return f"artist {artist.id} ({artist.name})"


def verify(artist_id: int, *, verified: bool = True, now: int) -> ArtistRow:
    """Give an artist the verified badge, or without `verified` remove it. Raises NotFound."""
    changed = Artist.update(verified=verified).where(Artist.id == artist_id, Artist.verified != verified).execute()
    artist = get(artist_id)
    if changed:
        kind: Kind = "artist.verified" if verified else "artist.unverified"
        security_events.add(kind, account_id=artist.manager_id, reason=about(artist), now=now, actor="cli")
    return artist


def of_albums(album_ids: Collection[int]) -> dict[int, Iterable[ArtistRow]]:
    return _credits(_album_links(album_ids))


def of_tracks(track_ids: Collection[int]) -> dict[int, Iterable[ArtistRow]]:
    return _credits(_track_links(track_ids))


def of_tracks_on(album_ids: Collection[int]) -> dict[int, Iterable[ArtistRow]]:
    """Return track id → artists for the tracks on these albums."""
    return _credits(_links_of_tracks_on(album_ids))


def _credits(links: Iterable[Any]) -> dict[int, Iterable[ArtistRow]]:
    known: dict[int, ArtistRow] = {}
    found: dict[int, Any] = {}
    for owner_id, *values in links:
        artist = known.get(values[0]) or known.setdefault(values[0], ArtistRow(*values))
        found.setdefault(owner_id, []).append(artist)
    return found


@compiled
def _album_links(album_ids: Collection[int]) -> Any:
    return _links(AlbumArtist, AlbumArtist.album).where(AlbumArtist.album.in_(album_ids))


@compiled
def _track_links(track_ids: Collection[int]) -> Any:
    return _links(TrackArtist, TrackArtist.track).where(TrackArtist.track.in_(track_ids))


@compiled
def _links_of_tracks_on(album_ids: Collection[int]) -> Any:
    links = _links(TrackArtist, TrackArtist.track).join(Track, on=(TrackArtist.track == Track.id))
    return links.where(Track.album.in_(album_ids))


def _links(link: type[AlbumArtist | TrackArtist], owner: Any) -> Any:
    query = link.select(owner, *COLUMNS).join_from(link, Artist)
    return query.order_by(owner, link.position, link.artist)
