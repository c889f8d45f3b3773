"""Playlists, their tracks, and the rights to see and change them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peewee import fn

from musicsvc.errors import Forbidden, NotFound, first
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.engine import bulk, list_blocks
from musicsvc.store.engine.name_index import PLAYLISTS
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, columns, paginate
from musicsvc.store.engine.sql import compiled, is_sqlite, lock_row, lock_rows
from musicsvc.store.models import ImportItem, Playlist, PlaylistInvite, PlaylistTrack, Track, User

UNKNOWN = "There is no such playlist."
CONTENTS = (PlaylistTrack.track, PlaylistTrack.added_by, PlaylistTrack.added_at)
MOST_TRACKS = 10_000  # that are added, and positions of a move: each costs the writer, and lists count tracks
RECORDS = "playlist_track"  # the kind of records of imports that are about playlists


@dataclass(slots=True)
class PlaylistRow:
    """A playlist with its owner. Collaborators may edit it only while `collaborative` is True."""

    id: int
    name: str
    public: bool
    collaborative: bool
    image: str | None
    description: str | None
    created_at: int
    tracks_count: int
    owner_id: int
    owner_name: str
    owner_avatar: str | None


COLUMNS = columns(
    PlaylistRow,
    Playlist,
    tracks_count=PlaylistTrack.select(fn.COUNT(PlaylistTrack.id)).where(PlaylistTrack.playlist == Playlist.id),
    owner_id=User.id,
    owner_name=User.display_name,
    owner_avatar=User.avatar,
)


def _select() -> Any:
    return Playlist.select(*COLUMNS).join(User)


def get(playlist_id: int) -> PlaylistRow:
    """Return the playlist without checking rights. Raises NotFound."""
    return PlaylistRow(*first(_by_id(playlist_id), UNKNOWN))


@compiled
def _by_id(playlist_id: int) -> Any:
    return _select().where(Playlist.id == playlist_id)


def lock(playlist_id: int) -> None:
    """Prevent other transactions from changing the playlist until this transaction ends."""
    if not is_sqlite():
        _locked(playlist_id)


@compiled
def _locked(playlist_id: int) -> Any:
    return lock_rows(Playlist.select(Playlist.id).where(Playlist.id == playlist_id))


def get_readable(playlist_id: int, *, actor: Identity) -> PlaylistRow:
    """Return the playlist. Raises NotFound if the actor may not see it."""
    playlist = get(playlist_id)
    if not (playlist.public or _may_edit(playlist, actor)):
        raise NotFound(UNKNOWN)
    return playlist


def get_editable(playlist_id: int, *, actor: Identity) -> PlaylistRow:
    """Lock and return the playlist. Raises NotFound if the actor may not see it, Forbidden without a right to edit."""
    lock(playlist_id)
    playlist = get_readable(playlist_id, actor=actor)
    if not _may_edit(playlist, actor):
        raise Forbidden("Only the owner of this playlist and its collaborators may change its tracks.")
    return playlist


def get_owned(playlist_id: int, *, actor: Identity) -> PlaylistRow:
    """Lock and return the playlist. Raises NotFound if the actor may not see it, Forbidden if not its owner."""
    lock(playlist_id)
    playlist = get_readable(playlist_id, actor=actor)
    if playlist.owner_id != actor.user_id:
        raise Forbidden("Only the owner of this playlist may do this.")
    return playlist


def _may_edit(playlist: PlaylistRow, actor: Identity) -> bool:
    if playlist.owner_id == actor.user_id:
        return True
    return playlist.collaborative and bool(_accepted_invites(playlist.id, actor.user_id))


@compiled
def _accepted_invites(playlist_id: int, user_id: int) -> Any:
    return PlaylistInvite.select(PlaylistInvite.id).where(PlaylistInvite.playlist == playlist_id, _accepted(user_id))


def _accepted(user_id: int) -> Any:
    return (PlaylistInvite.user == user_id) & (PlaylistInvite.state == "accepted")


def find_public(text: str, limit: int) -> list[PlaylistRow]:
    """Return public playlists whose names contain the text, best matches first."""
    chosen = PLAYLISTS.find(text, limit)
    found = {row[0]: PlaylistRow(*row) for row in _public(chosen)} if chosen else {}
    return [found[playlist_id] for playlist_id in chosen if playlist_id in found]


@compiled
def _public(ids: Sequence[int]) -> Any:
    return _select().where(Playlist.id.in_(ids), Playlist.public)


def list_editable(page: Page, *, actor: Identity) -> Listing[PlaylistRow]:
    """Return the playlists that the actor owns or may edit as a collaborator, newest first."""
    shared = [key for (key,) in _shared(actor.user_id)]
    return paginate(_owned, page, PlaylistRow, actor.user_id, counted=list_blocks.PLAYLISTS, more=shared)


@compiled
def _shared(user_id: int) -> Any:
    shared = Playlist.select(Playlist.id).join(PlaylistInvite).where(Playlist.collaborative, _accepted(user_id))
    return shared.where(Playlist.owner != user_id)


def _owned(user_id: int) -> ListQuery:
    return ListQuery(Playlist.select(Playlist.id).where(Playlist.owner == user_id), _select(), [Playlist.id.desc()])


def find_by_name(name: str, *, actor: Identity) -> PlaylistRow | None:
    """Lock and return the actor's oldest playlist with this name, or None. Concurrent calls for the actor wait."""
    lock_row(User, actor.user_id)
    query = Playlist.select(Playlist.id).where(Playlist.owner == actor.user_id, Playlist.name == name)
    for (playlist_id,) in [*lock_rows(query.order_by(Playlist.id).limit(1)).tuples().iterator()]:
        return get(playlist_id)
    return None


def create(values: Mapping[str, Any], *, now: int, actor: Identity) -> PlaylistRow:
    row = {**values, "owner": actor.user_id, "created_at": now}
    ((playlist_id,),) = _insert(*row.values(), columns=tuple(row))
    return get(playlist_id)


@compiled
def _insert(*values: object, columns: Sequence[str]) -> Any:
    return Playlist.insert(dict(zip(columns, values, strict=True))).returning(Playlist.id)


def replace(playlist_id: int, values: Mapping[str, Any]) -> PlaylistRow:
    """Update columns of a playlist that the caller has locked. A False `collaborative` removes all collaborators."""
    if values:
        Playlist.update(**values).where(Playlist.id == playlist_id).execute()
    if not values.get("collaborative", True):
        _end_collaborations(playlist_id)
    return get(playlist_id)


def _end_collaborations(playlist_id: int) -> None:
    """Delete accepted and pending invitations, which would be valid if collaboration were allowed again."""
    shared = PlaylistInvite.playlist == playlist_id, PlaylistInvite.state.in_(("pending", "accepted"))
    PlaylistInvite.delete().where(*shared).execute()


def delete(playlist_id: int) -> None:
    """Delete the playlist and its invitations. Its tracks stay in the catalog."""
    Playlist.delete().where(Playlist.id == playlist_id).execute()


def list_tracks(playlist_id: int, page: Page) -> Listing[TrackRow]:
    """Return the tracks of the playlist in order. A track that was added twice is listed twice."""
    return paginate(_inside, page, tracks.row, playlist_id, counted=list_blocks.PLAYLIST_TRACKS)


def _inside(playlist_id: int) -> ListQuery:
    rows = tracks.select().join(PlaylistTrack, on=(PlaylistTrack.track == Track.id))
    keys = PlaylistTrack.select(PlaylistTrack.id).where(PlaylistTrack.playlist == playlist_id)
    return ListQuery(keys, rows, [PlaylistTrack.id])


def append(playlist_id: int, track_ids: Sequence[int], *, actor: int | None, now: int) -> None:
    """Append the tracks in order, even those already in the playlist. `actor` is the id of the account adding them.

    The caller has locked the playlist.
    """
    rows = [(playlist_id, track_id, actor, now) for track_id in track_ids]
    bulk.insert(PlaylistTrack, ("playlist", "track", "added_by", "added_at"), rows)


def remove(playlist_id: int, track_ids: Sequence[int]) -> None:
    """Remove every occurrence of the tracks from a playlist that the caller has locked. Ignore other tracks."""
    inside = PlaylistTrack.playlist == playlist_id
    PlaylistTrack.delete().where(inside, PlaylistTrack.track.in_(track_ids)).execute()


def move(playlist_id: int, first: int, to: int) -> None:
    """Move the track at the position `first` of a playlist to `to`, from 1 on. The caller has locked the playlist.

    The rows between keep their ids, which give the order, and exchange what they contain.
    """
    low, high = sorted((first, to))
    keys = PlaylistTrack.select(PlaylistTrack.id, *CONTENTS).where(PlaylistTrack.playlist == playlist_id)
    rows = list(keys.order_by(PlaylistTrack.id).limit(high - low + 1).offset(low - 1).tuples().iterator())
    moved = [*rows[1:], rows[0]] if first < to else [rows[-1], *rows[:-1]]
    ids = {source[0]: row[0] for row, source in zip(rows, moved, strict=True) if row[0] != source[0]}
    if ids:
        _fill.many([(ids[entry], *contents) for entry, *contents in moved])
        _move_records(ids)


@compiled
def _fill(entry: int, track: int, added_by: int | None, added_at: int) -> Any:
    contents = {"track": track, "added_by": added_by, "added_at": added_at}
    return PlaylistTrack.update(**contents).where(PlaylistTrack.id == entry)


def _move_records(ids: Mapping[int, int]) -> None:
    """Let records of imports follow the entries that they are about. `ids`: new ids by former ones."""
    records = _records([*ids])
    _forget([*ids])
    bulk.insert(ImportItem, ("run", "kind", "item"), [(run_id, RECORDS, ids[item]) for run_id, item in records])


@compiled
def _records(entries: Sequence[int]) -> Any:
    return ImportItem.select(ImportItem.run, ImportItem.item).where(_about(entries))


@compiled
def _forget(entries: Sequence[int]) -> Any:
    return ImportItem.delete().where(_about(entries))


def _about(entries: Sequence[int]) -> Any:
    return (ImportItem.kind == RECORDS) & ImportItem.item.in_(entries)


def ensure_imported(owner_id: int, external_id: str, name: str, now: int, *, public: bool = False) -> int:
    """Return the id of the owner's playlist with `external_id` (its id in another service), created if missing."""
    row = {"owner": owner_id, "external_id": external_id, "name": name, "public": public, "created_at": now}
    target = [Playlist.external_id, Playlist.owner]
    Playlist.insert(row).on_conflict(conflict_target=target, action="IGNORE").execute()
    found: Playlist = Playlist.get(Playlist.owner == owner_id, Playlist.external_id == external_id)
    return int(found.id)
