"""Invitations to edit a playlist, and its collaborators."""

from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.playlists import InviteIn
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes.envelope import JSON, Site, ok, paged
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.playlists import invites
from musicsvc.store.playlists.invites import Collaborator, Invitation
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


def index(query: Pages, caller: Identity, site: Site, now: int) -> JSON:
    """List the caller's open invitations, newest first."""
    return paged(invites.list_received(query.to_page(), now=now, actor=caller), catalog.invitation, site)


def list_collaborators(subject: PlaylistRow, query: Pages, site: Site) -> JSON:
    """List the collaborators of a playlist, the last to accept first."""
    return paged(invites.list_collaborators(subject.id, query.to_page()), catalog.account, site)


def remove_collaborator(subject: Collaborator) -> JSON:
    """Remove a collaborator from a playlist; with `me`, the caller leaves it."""
    invites.remove(subject)
    return ok()
