"""Create, load and verify artists, and assign the accounts that manage them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peewee import fn

from musicsvc.errors import NotFound
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, columns, paginate
from musicsvc.store.models import AlbumArtist, Artist, TrackArtist

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from musicsvc.store.accounts.tokens import Identity
    from musicsvc.store.models import User


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


def _counts() -> tuple[Any, Any]:
    albums = AlbumArtist.select(fn.COUNT(AlbumArtist.album)).where(AlbumArtist.artist == Artist.id)
    tracks = TrackArtist.select(fn.COUNT(TrackArtist.track)).where(TrackArtist.artist == Artist.id)
    return albums, tracks


def get(artist_id: int) -> ArtistRow:
    for values in Artist.select(*COLUMNS, *_counts()).where(Artist.id == artist_id).tuples().iterator():
        return ArtistRow(*values)
    raise NotFound("There is no such artist.")


def list_all(page: Page) -> Listing[ArtistRow]:
    """Return all artists, newest first."""
    return paginate(_all, page, ArtistRow)


def _all() -> ListQuery:
    return ListQuery(Artist.select(Artist.id), Artist.select(*COLUMNS, *_counts()), [Artist.id.desc()])


def missing(ids: Collection[int]) -> set[int]:
    found = {row[0] for row in Artist.select(Artist.id).where(Artist.id.in_(ids)).tuples().iterator()} if ids else set()
    return set(ids) - found


def managed(ids: Collection[int], *, actor: Identity) -> set[int]:
    query = Artist.select(Artist.id).where(Artist.id.in_(ids), Artist.manager == actor.user_id)
    return {row[0] for row in query.tuples().iterator()}


def create(name: str, description: str | None, image_small: str | None, *, now: int, actor: Identity) -> ArtistRow:
    """Create an artist that is managed by the actor and not verified."""
    artist = Artist.create(
        name=name, description=description, image_small=image_small, manager=actor.user_id, created_at=now
    )
    return get(artist.id)


def assign(artist_id: int, user: User) -> ArtistRow:
    Artist.update(manager=user.id).where(Artist.id == artist_id).execute()
    return get(artist_id)


def verify(artist_id: int, *, verified: bool = True) -> ArtistRow:
    Artist.update(verified=verified).where(Artist.id == artist_id).execute()
    return get(artist_id)


def load_credits(link: type[AlbumArtist | TrackArtist], owner: Any, condition: Any) -> dict[int, Iterable[ArtistRow]]:
    """Return album or track id → artists. `owner` is the id column of table `link`, `condition` selects its rows."""
    query = link.select(owner, *COLUMNS).join(Artist, on=(link.artist == Artist.id)).where(condition)
    known: dict[int, ArtistRow] = {}
    found: dict[int, Any] = {}
    for owner_id, *values in query.order_by(owner, link.position, link.artist).tuples().iterator():
        artist = known.get(values[0]) or known.setdefault(values[0], ArtistRow(*values))
        found.setdefault(owner_id, []).append(artist)
    return found
