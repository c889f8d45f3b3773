"""Collections: named sets of tracks that an account made for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from musicsvc.errors import NotFound
from musicsvc.store import tracks
from musicsvc.store.models import Collection, CollectionTrack, User
from musicsvc.store.pagination import Listing, Page, paginate
from musicsvc.store.summaries import COLUMNS as USER
from musicsvc.store.summaries import UserSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musicsvc.store.tokens import Identity
    from musicsvc.store.tracks import TrackRow


@dataclass(slots=True)
class CollectionRow:
    """A collection with its maker and its tracks, in order."""

    id: int
    name: str
    description: str | None
    created_at: int
    user: UserSummary
    tracks: Sequence[TrackRow] = ()


COLUMNS = (Collection.id, Collection.name, Collection.description, Collection.created_at)


def _row(collection_id: int, name: str, description: str | None, created_at: int, *user: Any) -> CollectionRow:
    return CollectionRow(collection_id, name, description, created_at, UserSummary(*user))


def get(collection_id: int, *, by: Identity) -> CollectionRow:
    """The caller's collection; NotFound for another's."""
    query = Collection.select(*COLUMNS, *USER).join(User)
    mine = (Collection.id == collection_id) & (Collection.user == by.user_id)
    for values in query.where(mine).tuples().iterator():
        return _with_tracks([_row(*values)])[0]
    raise NotFound("There is no such collection.")


def listing(page: Page, *, by: Identity) -> Listing[CollectionRow]:
    """The caller's collections, newest first."""
    query = Collection.select(*COLUMNS, *USER).join(User).where(Collection.user == by.user_id)
    found = paginate(query.order_by(Collection.id.desc()), page, _row)
    _with_tracks(found.rows)
    return found


def create(name: str, description: str | None, track_ids: Sequence[int], *, now: int, by: Identity) -> CollectionRow:
    """A new collection of the caller; the tracks exist."""
    made = Collection.create(user=by.user_id, name=name, description=description, created_at=now)
    if track_ids:
        links = [{"collection": made.id, "position": at, "track": each} for at, each in enumerate(track_ids)]
        CollectionTrack.insert_many(links).execute()
    return get(made.id, by=by)


def _with_tracks(rows: Sequence[CollectionRow]) -> Sequence[CollectionRow]:
    if not rows:
        return rows
    chosen = CollectionTrack.collection.in_([row.id for row in rows])
    links = CollectionTrack.select(CollectionTrack.collection, CollectionTrack.track).where(chosen)
    known = {row.id: row for row in tracks.find(CollectionTrack.select(CollectionTrack.track).where(chosen))}
    found: dict[int, list[TrackRow]] = {}
    for collection_id, track_id in links.order_by(CollectionTrack.position).tuples().iterator():
        found.setdefault(collection_id, []).append(known[track_id])
    for row in rows:
        row.tracks = found.get(row.id, ())
    return rows
