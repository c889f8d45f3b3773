"""Invitations to edit a playlist, which expire after seven days, and the collaborators who accepted one."""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, Forbidden, NotFound, existing
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.accounts.user_search import SUMMARY, UserSummary
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, paginate
from musicsvc.store.models import Playlist, PlaylistInvite, User
from musicsvc.store.playlists import playlists
from musicsvc.store.playlists.playlists import PlaylistRow

LIFETIME = 7 * DAY
ID = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
ANSWERED = {
    "accepted": "You have already accepted this invitation.",
    "declined": "You have already declined this invitation. Ask the owner to invite you again.",
    "expired": "This invitation has expired. Ask the owner to invite you again.",
}
EXISTING = {
    "accepted": "This user is already a collaborator of the playlist.",
    "pending": "This user has already been invited to the playlist.",
}


@dataclass(slots=True)
class Invitation:
    """An invitation to edit a playlist. After it has expired, the `state` is still `pending`; use `state_at`."""

    id: int
    playlist: PlaylistRow
    state: str
    expires_at: int

    def state_at(self, now: int) -> str:
        """Return the state at the time `now`: `pending`, `accepted`, `declined` or `expired`."""
        return "expired" if self.state == "pending" and now >= self.expires_at else self.state


def get_own(playlist_id: int, *, actor: Identity) -> Invitation:
    """Lock the playlist and return the actor's invitation to it. Raises NotFound if there is none."""
    playlists.lock(playlist_id)
    found = existing(_find(playlist_id, actor.user_id), "You have no invitation to this playlist.")
    return Invitation(found.id, playlists.get(playlist_id), found.state, found.expires_at)


def create(playlist: PlaylistRow, user_id: int, *, now: int) -> None:
    """Invite the account to edit the playlist, or renew the account's declined or expired invitation.

    The caller must have locked the playlist. Raises Conflict if the account's invitation is pending or accepted.
    """
    found = _find(playlist.id, user_id)
    if found is not None:
        state = Invitation(found.id, playlist, found.state, found.expires_at).state_at(now)
        if state in EXISTING:
            raise Conflict(EXISTING[state])
    fresh = {"state": "pending", "created_at": now, "expires_at": now + LIFETIME, "answered_at": None}
    target = [PlaylistInvite.playlist, PlaylistInvite.user]
    insert = PlaylistInvite.insert(playlist=playlist.id, user=user_id, **fresh)
    insert.on_conflict(conflict_target=target, update=fresh).execute()
    Playlist.update(collaborative=True).where(Playlist.id == playlist.id).execute()


def accept(invitation: Invitation, *, now: int) -> PlaylistRow:
    """Accept the invitation and return the playlist. Raises Conflict unless the invitation is pending."""
    return _answer(invitation, "accepted", now)


def decline(invitation: Invitation, *, now: int) -> PlaylistRow:
    """Decline the invitation and return the playlist. Raises Conflict unless the invitation is pending."""
    return _answer(invitation, "declined", now)


def _find(playlist_id: int, user_id: int) -> PlaylistInvite | None:
    found: PlaylistInvite | None = PlaylistInvite.get_or_none(
        PlaylistInvite.playlist == playlist_id, PlaylistInvite.user == user_id
    )
    return found


def _answer(invitation: Invitation, state: str, now: int) -> PlaylistRow:
    if refusal := ANSWERED.get(invitation.state_at(now)):
        raise Conflict(refusal)
    PlaylistInvite.update(state=state, answered_at=now).where(PlaylistInvite.id == invitation.id).execute()
    return invitation.playlist


class Received(NamedTuple):
    """An open invitation to edit a playlist."""

    playlist: PlaylistRow
    created_at: int
    expires_at: int


def list_received(page: Page, *, now: int, actor: Identity) -> Listing[Received]:
    """Return the actor's open invitations, newest first."""
    return paginate(_received, page, _to_received, actor.user_id, now, counted=None)


def _received(user_id: int, now: int) -> ListQuery:
    times = PlaylistInvite.created_at, PlaylistInvite.expires_at
    rows = PlaylistInvite.select(*times, *playlists.COLUMNS).join(Playlist).join(User, on=(Playlist.owner == User.id))
    pending = (PlaylistInvite.state == "pending") & (PlaylistInvite.expires_at > now)
    keys = PlaylistInvite.select(PlaylistInvite.id).where(PlaylistInvite.user == user_id, pending)
    return ListQuery(keys, rows, [PlaylistInvite.created_at.desc(), PlaylistInvite.id.desc()])


def _to_received(created_at: int, expires_at: int, *playlist: Any) -> Received:
    return Received(PlaylistRow(*playlist), created_at, expires_at)


class Collaborator(NamedTuple):
    """An account that may edit the tracks of a playlist, as its invitation says."""

    playlist: int
    user: int


def list_collaborators(playlist_id: int, page: Page) -> Listing[UserSummary]:
    """Return the accounts that accepted an invitation to the playlist, the last to accept first."""
    return paginate(_collaborators, page, UserSummary, playlist_id, counted=None)


def _collaborators(playlist_id: int) -> ListQuery:
    rows = PlaylistInvite.select(*SUMMARY).join(User, on=(PlaylistInvite.user == User.id))
    accepted = (PlaylistInvite.playlist == playlist_id) & (PlaylistInvite.state == "accepted")
    keys = PlaylistInvite.select(PlaylistInvite.id).where(accepted)
    return ListQuery(keys, rows, [PlaylistInvite.answered_at.desc(), PlaylistInvite.id.desc()])


def get_removable(playlist_id: int, user: str, *, actor: Identity) -> Collaborator:
    """Lock the playlist and return a collaborator; `user` is an id or `me`.

    Raises NotFound, or Forbidden unless the actor is this collaborator or owns the playlist.
    """
    playlists.lock(playlist_id)
    playlist = playlists.get_readable(playlist_id, actor=actor)
    user_id = actor.user_id if user == "me" else int(user) if ID.fullmatch(user) else 0
    if actor.user_id not in {playlist.owner_id, user_id}:
        raise Forbidden("Only the owner of this playlist may remove others from it.")
    found = _find(playlist_id, user_id) if user_id else None
    if found is None or found.state != "accepted":
        raise NotFound("There is no such collaborator.")
    return Collaborator(playlist_id, user_id)


def remove(collaborator: Collaborator) -> None:
    """End a collaboration. The owner may invite the account again."""
    whose = PlaylistInvite.playlist == collaborator.playlist, PlaylistInvite.user == collaborator.user
    PlaylistInvite.delete().where(*whose).execute()
