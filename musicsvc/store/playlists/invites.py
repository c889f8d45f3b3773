"""Invitations to edit a playlist: pending for seven days, then accepted, declined or expired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, NotFound
from musicsvc.store.models import Playlist, PlaylistInvite
from musicsvc.store.playlists import playlists

if TYPE_CHECKING:
    from musicsvc.store.accounts.tokens import Identity
    from musicsvc.store.playlists.playlists import PlaylistRow

LIFETIME = 7 * DAY
ANSWERED = {
    "accepted": "You have accepted this invitation already.",
    "declined": "You have declined this invitation already. Ask the owner to invite you again.",
    "expired": "This invitation has expired. Ask the owner to invite you again.",
}
STANDING = {
    "accepted": "This user is a collaborator of the playlist already.",
    "pending": "This user has been invited to the playlist already.",
}


@dataclass(slots=True)
class Invitation:
    """An account's invitation to a playlist; from `expires_at` on a pending one is expired."""

    id: int
    playlist: PlaylistRow
    state: str
    expires_at: int

    def state_at(self, now: int) -> str:
        """`pending`, `accepted`, `declined` or `expired`."""
        return "expired" if self.state == "pending" and now >= self.expires_at else self.state


def addressed(playlist_id: int, *, actor: Identity) -> Invitation:
    """The caller's invitation, locked, also to a playlist that the caller cannot see; NotFound where none is."""
    playlists.lock(playlist_id)
    found = _find(playlist_id, actor.user_id)
    if found is None:
        raise NotFound("You have no invitation to such a playlist.")
    return Invitation(found.id, playlists.get(playlist_id), found.state, found.expires_at)


def create(playlist: PlaylistRow, user_id: int, *, now: int) -> None:
    """Invite the account to a playlist that is locked, and make that collaborative.

    An invitation that was declined or has expired is renewed. Conflict where one is pending or was accepted.
    """
    found = _find(playlist.id, user_id)
    if found is not None:
        state = Invitation(found.id, playlist, found.state, found.expires_at).state_at(now)
        if state in STANDING:
            raise Conflict(STANDING[state])
    fresh = {"state": "pending", "created_at": now, "expires_at": now + LIFETIME, "answered_at": None}
    target = [PlaylistInvite.playlist, PlaylistInvite.user]
    insert = PlaylistInvite.insert(playlist=playlist.id, user=user_id, **fresh)
    insert.on_conflict(conflict_target=target, update=fresh).execute()
    Playlist.update(collaborative=True).where(Playlist.id == playlist.id).execute()


def accept(invitation: Invitation, *, now: int) -> PlaylistRow:
    """Become a collaborator. Conflict where the invitation is not pending."""
    _require_pending(invitation, now)
    return _answer(invitation, "accepted", now)


def decline(invitation: Invitation, *, now: int) -> PlaylistRow:
    """Say no. Conflict where the invitation is not pending."""
    _require_pending(invitation, now)
    return _answer(invitation, "declined", now)


def _find(playlist_id: int, user_id: int) -> PlaylistInvite | None:
    found: PlaylistInvite | None = PlaylistInvite.get_or_none(
        PlaylistInvite.playlist == playlist_id, PlaylistInvite.user == user_id
    )
    return found


def _require_pending(invitation: Invitation, now: int) -> None:
    state = invitation.state_at(now)
    if state in ANSWERED:
        raise Conflict(ANSWERED[state])


def _answer(invitation: Invitation, state: str, now: int) -> PlaylistRow:
    PlaylistInvite.update(state=state, answered_at=now).where(PlaylistInvite.id == invitation.id).execute()
    return invitation.playlist
