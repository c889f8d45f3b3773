"""Create and load collections: private, named lists of tracks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from peewee import fn

from musicsvc.errors import first
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.accounts.user_search import SUMMARY as USER
from musicsvc.store.accounts.user_search import UserSummary
from musicsvc.store.engine import list_blocks
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, paginate
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Collection, CollectionTrack, User


@dataclass(slots=True)
class CollectionRow:
    """A collection with its owner. `track_ids` is in order; the function `list_own` leaves it empty."""

    id: int
    name: str
    description: str | None
    created_at: int
    user: UserSummary
    tracks_count: int = 0
    track_ids: Sequence[int] = ()


COLUMNS = (Collection.id, Collection.name, Collection.description, Collection.created_at)


def _row(collection_id: int, name: str, description: str | None, created_at: int, *user: Any) -> CollectionRow:
    return CollectionRow(collection_id, name, description, created_at, UserSummary(*user))


def get(collection_id: int, *, actor: Identity) -> CollectionRow:
    """Return the collection with its track ids. Raises NotFound if the actor does not own it."""
    values = first(_by_id(collection_id, actor.user_id), "There is no such collection.")
    return _with_track_ids(_row(*values))


@compiled
def _by_id(collection_id: int, user_id: int) -> Any:
    query = Collection.select(*COLUMNS, *USER).join(User)
    return query.where(Collection.id == collection_id, Collection.user == user_id)


def list_own(page: Page, *, actor: Identity) -> Listing[CollectionRow]:
    """Return the actor's collections, newest first."""
    found = paginate(_own, page, _row, actor.user_id, counted=list_blocks.COLLECTIONS)
    counts = dict(_tracks_counts(found.ids))
    for row in found.rows:
        row.tracks_count = counts.get(row.id, 0)
    return found


def _own(user_id: int) -> ListQuery:
    keys = Collection.select(Collection.id).where(Collection.user == user_id)
    return ListQuery(keys, Collection.select(*COLUMNS, *USER).join(User), [Collection.id.desc()])


def create(name: str, description: str | None, track_ids: Sequence[int], *, now: int, actor: Identity) -> CollectionRow:
    created = Collection.create(user=actor.user_id, name=name, description=description, created_at=now)
    if track_ids:
        links = [{"collection": created.id, "position": at, "track": each} for at, each in enumerate(track_ids)]
        CollectionTrack.insert_many(links).execute()
    return get(created.id, actor=actor)


@compiled
def _tracks_counts(ids: Sequence[int]) -> Any:
    query = CollectionTrack.select(CollectionTrack.collection, fn.COUNT(CollectionTrack.track))
    return query.where(CollectionTrack.collection.in_(ids)).group_by(CollectionTrack.collection)


def _with_track_ids(row: CollectionRow) -> CollectionRow:
    row.track_ids = [track_id for (track_id,) in _track_ids(row.id)]
    row.tracks_count = len(row.track_ids)
    return row


@compiled
def _track_ids(collection_id: int) -> Any:
    links = CollectionTrack.select(CollectionTrack.track).where(CollectionTrack.collection == collection_id)
    return links.order_by(CollectionTrack.position)
