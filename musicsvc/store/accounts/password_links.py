"""One-time links to set a password. Only the SHA-256 of a link's secret is stored."""

import secrets
from typing import NamedTuple

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, NotFound, existing
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.sql import lock_row
from musicsvc.store.models import PasswordLink, User
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor

SECRET_BYTES = 32
LIFETIME = DAY
UNKNOWN = (
    "This link is not valid any more. If you have set your password with it, sign in with that password. Otherwise ask"
    " the operator for a new link."
)


class NewLink(NamedTuple):
    """The secret of a new link, and the time from which the link is invalid."""

    secret: str
    expires_at: int

    def url(self, root: str) -> str:
        """Return the address of the page on which the password is set. `root`: the service's root URL."""
        return f"{root}/password/{self.secret}"


def create(user: User, *, now: int, actor: Actor = "cli") -> NewLink:
    """Create a link for the account, valid for 24 hours. The account's previous link becomes invalid.

    Raises Conflict if the account is suspended.
    """
    if user.suspended_at is not None:
        raise Conflict(f"{user.email} is suspended. Reinstate the account first.")
    link = NewLink(secrets.token_urlsafe(SECRET_BYTES), now + LIFETIME)
    digest = tokens.digest(link.secret)
    row = PasswordLink.insert(user=user.id, digest=digest, created_at=now, expires_at=link.expires_at)
    row.on_conflict(
        conflict_target=[PasswordLink.user],
        preserve=[PasswordLink.digest, PasswordLink.created_at, PasswordLink.expires_at],
    ).execute()
    security_events.add("password.link_created", account_id=user.id, now=now, actor=actor)
    return link


def find(secret: str, *, now: int) -> User:
    """Return the account whose password the link sets. Raises NotFound unless the link is valid."""
    valid = PasswordLink.digest == tokens.digest(secret), PasswordLink.expires_at > now, User.suspended_at.is_null()
    user: User = existing(User.select().join(PasswordLink).where(*valid).first(), UNKNOWN)
    return user


def use(secret: str, password_hash: str, *, now: int) -> User:
    """Set the account's password and delete the link. Raises NotFound unless the link is valid.

    Revokes the tokens that were created before the account first had API access.
    """
    user = find(secret, now=now)
    lock_row(User, user.id)  # first, as other changes of the account do
    # Of two requests with the same link, only the one that deletes the row sets the password.
    if not PasswordLink.delete().where(PasswordLink.digest == tokens.digest(secret)).execute():
        raise NotFound(UNKNOWN)
    users.set_password(user, password_hash, now=now, actor="page")
    tokens.revoke_before_access(user, now=now, actor="page")
    return user
