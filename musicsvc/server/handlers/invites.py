"""Invitations to edit a playlist."""

from musicsvc.server.schemas.playlists import InviteIn
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes.envelope import JSON, Site, ok
from musicsvc.store.playlists import invites
from musicsvc.store.playlists.invites import Invitation
from musicsvc.store.playlists.playlists import PlaylistRow


def create(subject: PlaylistRow, body: InviteIn, now: int) -> JSON:
    """Invite a user to edit the tracks of a playlist, and make the playlist collaborative."""
    invites.create(subject, body.user_id, now=now)
    return ok(message="Invitation sent successfully.")


def accept(subject: Invitation, site: Site, now: int) -> JSON:
    """Accept the caller's invitation to a playlist."""
    return ok(playlist=catalog.playlist(invites.accept(subject, now=now), site))


def decline(subject: Invitation, site: Site, now: int) -> JSON:
    """Decline the caller's invitation to a playlist."""
    return ok(playlist=catalog.playlist(invites.decline(subject, now=now), site))
