"""Playlists: what stands in them, who sees them and who may change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peewee import fn

from musicsvc.errors import Forbidden, NotFound
from musicsvc.store.accounts.user_summary import COLUMNS as USER
from musicsvc.store.catalog import tracks
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.engine.dialect import lock_rows
from musicsvc.store.engine.pagination import Listing, Page, paginate
from musicsvc.store.models import Playlist, PlaylistInvite, PlaylistTrack, Track, User

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from musicsvc.store.accounts.tokens import Identity

ROWS_AT_ONCE = 5_000  # keeps an insert below the stores' bounds on parameters
UNKNOWN = "There is no such playlist."


@dataclass(slots=True)
class PlaylistRow:
    """A playlist with its owner; `collaborative` says whether its collaborators may use their rights."""

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


COLUMNS = (
    Playlist.id,
    Playlist.name,
    Playlist.public,
    Playlist.collaborative,
    Playlist.image,
    Playlist.description,
    Playlist.created_at,
)


def _select() -> Any:
    count = PlaylistTrack.select(fn.COUNT(PlaylistTrack.id)).where(PlaylistTrack.playlist == Playlist.id)
    return Playlist.select(*COLUMNS, count, *USER).join(User, on=(Playlist.owner == User.id))


def get(playlist_id: int) -> PlaylistRow:
    """The playlist, whoever asks; raises NotFound."""
    for values in _select().where(Playlist.id == playlist_id).tuples().iterator():
        return PlaylistRow(*values)
    raise NotFound(UNKNOWN)


def lock(playlist_id: int) -> None:
    """Let nobody else change the playlist until the unit ends."""
    lock_rows(Playlist.select(Playlist.id).where(Playlist.id == playlist_id)).first()


def readable(playlist_id: int, *, actor: Identity) -> PlaylistRow:
    """The playlist, for whoever may see it; NotFound where it is private to others."""
    playlist = get(playlist_id)
    if not (playlist.public or _edits(playlist, actor)):
        raise NotFound(UNKNOWN)
    return playlist


def editable(playlist_id: int, *, actor: Identity) -> PlaylistRow:
    """The playlist, locked, for its owner and collaborators; NotFound where it is private to others, else Forbidden."""
    lock(playlist_id)
    playlist = readable(playlist_id, actor=actor)
    if not _edits(playlist, actor):
        raise Forbidden("Only the owner of this playlist and its collaborators may change its tracks.")
    return playlist


def owned(playlist_id: int, *, actor: Identity) -> PlaylistRow:
    """The playlist, locked, for its owner; Forbidden for others who see it, NotFound for those who do not."""
    lock(playlist_id)
    playlist = readable(playlist_id, actor=actor)
    if playlist.owner_id != actor.user_id:
        raise Forbidden("Only the owner of this playlist may do this.")
    return playlist


def _edits(playlist: PlaylistRow, actor: Identity) -> bool:
    """Whether the caller may edit the tracks: the owner, and collaborators while the playlist is collaborative."""
    if playlist.owner_id == actor.user_id:
        return True
    shared = PlaylistInvite.playlist == playlist.id
    return playlist.collaborative and bool(PlaylistInvite.select().where(shared, _accepted(actor)).exists())


def _accepted(actor: Identity) -> Any:
    return (PlaylistInvite.user == actor.user_id) & (PlaylistInvite.state == "accepted")


def listing(page: Page, *, actor: Identity) -> Listing[PlaylistRow]:
    """The caller's playlists and those that the caller may edit with others, newest first."""
    # A union, because PostgreSQL reads the whole table for "mine or shared with me".
    own = Playlist.select(Playlist.id).where(Playlist.owner == actor.user_id)
    shared = Playlist.select(Playlist.id).join(PlaylistInvite).where(Playlist.collaborative, _accepted(actor))
    keys = Playlist.select(Playlist.id).where(Playlist.id.in_(own | shared))
    return paginate(keys, _select(), [Playlist.id.desc()], page, PlaylistRow)


def named(name: str, *, actor: Identity) -> PlaylistRow | None:
    """The caller's oldest playlist of exactly this name, locked; until the unit ends no other unit looks for one."""
    lock_rows(User.select(User.id).where(User.id == actor.user_id)).first()
    query = Playlist.select(Playlist.id).where(Playlist.owner == actor.user_id, Playlist.name == name)
    for (playlist_id,) in [*lock_rows(query.order_by(Playlist.id)).tuples().iterator()]:
        return get(playlist_id)
    return None


def create(values: Mapping[str, Any], *, now: int, actor: Identity) -> PlaylistRow:
    """A new playlist of the caller; `values` are columns of the table."""
    return get(Playlist.create(**values, owner=actor.user_id, created_at=now).id)


def replace(playlist_id: int, values: Mapping[str, Any]) -> PlaylistRow:
    """Give the locked playlist these columns; its tracks stay, and its collaborators unless `collaborative` is off."""
    Playlist.update(**values).where(Playlist.id == playlist_id).execute()
    if not values.get("collaborative", True):
        _end_collaborations(playlist_id)
    return get(playlist_id)


def _end_collaborations(playlist_id: int) -> None:
    """Delete accepted and open invitations, so that no later change of the playlist restores rights."""
    shared = PlaylistInvite.playlist == playlist_id, PlaylistInvite.state.in_(("pending", "accepted"))
    PlaylistInvite.delete().where(*shared).execute()


def delete(playlist_id: int) -> None:
    """Delete the playlist with its places and invitations; the tracks themselves stay in the catalog."""
    Playlist.delete().where(Playlist.id == playlist_id).execute()


def tracks_of(playlist_id: int, page: Page) -> Listing[TrackRow]:
    """The tracks in their order, each as often as it stands in the playlist."""
    inside = PlaylistTrack.playlist == playlist_id
    rows = tracks.select().join(PlaylistTrack, on=(PlaylistTrack.track == Track.id))
    keys = PlaylistTrack.select(PlaylistTrack.id).where(inside)
    return paginate(keys, rows, [PlaylistTrack.id], page, TrackRow)


def append(playlist_id: int, track_ids: Sequence[int], *, actor: int | None, now: int) -> None:
    """Put the tracks at the end, in this order, also those that stand in it already; `by` is an account's id."""
    lock(playlist_id)
    for start in range(0, len(track_ids), ROWS_AT_ONCE):
        some = track_ids[start : start + ROWS_AT_ONCE]
        rows = [{"playlist": playlist_id, "track": each, "added_by": actor, "added_at": now} for each in some]
        PlaylistTrack.insert_many(rows).execute()


def remove(playlist_id: int, track_ids: Sequence[int]) -> None:
    """Take every occurrence of the tracks out; those that are not in the playlist are ignored."""
    lock(playlist_id)
    inside = PlaylistTrack.playlist == playlist_id
    PlaylistTrack.delete().where(inside, PlaylistTrack.track.in_(track_ids)).execute()


def ensure_imported(owner_id: int, external_id: str, name: str, now: int, *, public: bool = False) -> int:
    """The id of the account's playlist of this external id, made under this name where there is none yet."""
    row = {"owner": owner_id, "external_id": external_id, "name": name, "public": public, "created_at": now}
    target = [Playlist.external_id, Playlist.owner]
    Playlist.insert(row).on_conflict(conflict_target=target, action="IGNORE").execute()
    found: Playlist = Playlist.get(Playlist.owner == owner_id, Playlist.external_id == external_id)
    return int(found.id)
