"""Create, accept and decline invitations to edit a playlist, which expire after seven days."""

from dataclasses import dataclass

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, NotFound
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.models import Playlist, PlaylistInvite
from musicsvc.store.playlists import playlists
from musicsvc.store.playlists.playlists import PlaylistRow

LIFETIME = 7 * DAY
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
    found = _find(playlist_id, actor.user_id)
    if found is None:
        raise NotFound("You have no invitation to this playlist.")
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
    _require_pending(invitation, now)
    return _answer(invitation, "accepted", now)


def decline(invitation: Invitation, *, now: int) -> PlaylistRow:
    """Decline the invitation and return the playlist. Raises Conflict unless the invitation is pending."""
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
