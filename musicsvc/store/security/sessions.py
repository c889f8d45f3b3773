"""Sessions of signed-in browsers. Only the SHA-256 of a session's id is stored."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from musicsvc.clock import DAY, MINUTE
from musicsvc.errors import existing
from musicsvc.store.engine.sql import compiled, lock_row
from musicsvc.store.models import Session, User

ID_BYTES = 32
IDLE = DAY // 2
LIFETIME = 30 * DAY
LONGEST_AGENT = 300
MOST = 50  # sessions of an account


class SessionIdentity(NamedTuple):
    """A session and its account."""

    session_id: int
    last_used_at: int
    user_id: int
    email: str
    display_name: str
    avatar: str | None
    admin: bool
    api_access: bool
    reports_plays: bool

    def is_due(self, now: int) -> bool:
        """Return True if the stored time of last use is at least a minute old and should be updated."""
        return now - self.last_used_at >= MINUTE


def create(user: User, *, address: str, agent: str, now: int, instead_of: SessionIdentity | None = None) -> str:
    """Create a session of the account and return its id, of which only a hash is stored.

    Ends the session `instead_of` and, if the account has too many, those unused for longest. Deletes unused sessions;
    those that were used until the end of their lifetime are deleted twelve hours later. `address`, `agent`: the
    client's address and User-Agent, shown to the owner.
    """
    lock_row(User, user.id)  # one sign-in after the other
    Session.delete().where(Session.last_used_at <= now - IDLE).execute()
    if instead_of is not None:
        end(instead_of.session_id)
    last_used = Session.select(Session.id).where(Session.user == user.id)
    last_used = last_used.order_by(Session.last_used_at.desc(), Session.id.desc()).limit(MOST - 1)
    Session.delete().where(Session.user == user.id, Session.id.not_in(last_used)).execute()
    value = secrets.token_urlsafe(ID_BYTES)
    Session.insert(
        user=user.id,
        digest=digest(value),
        created_at=now,
        last_used_at=now,
        address=address,
        agent=agent[:LONGEST_AGENT],
    ).execute()
    return value


def digest(value: str) -> bytes:
    """Return the SHA-256 of a session's id, which is stored instead of the id."""
    return hashlib.sha256(value.encode()).digest()


def find(value: str, *, now: int) -> SessionIdentity | None:
    """Return the session with this id, or None if it does not exist, has ended, or its account is suspended."""
    for row in _find(digest(value), now - IDLE, now - LIFETIME):
        return SessionIdentity._make((*row[:6], *map(bool, row[6:])))
    return None


@compiled
def _find(hashed: bytes, used_after: int, created_after: int) -> Any:
    account = (User.id, User.email, User.display_name, User.avatar, User.admin, User.api_access, User.reports_plays)
    query = Session.select(Session.id, Session.last_used_at, *account).join(User)
    lives = (Session.last_used_at > used_after) & (Session.created_at > created_after) & User.suspended_at.is_null()
    return query.where(Session.digest == hashed, lives)


def touch(session_id: int, *, now: int) -> None:
    """Store that the session was used now."""
    Session.update(last_used_at=now).where(Session.id == session_id, Session.last_used_at < now).execute()


def list(  # noqa: A001 - the module is the namespace
    user_id: int, *, now: int, limit: int = MOST, before: int | None = None
) -> Sequence[Session]:
    """Return the newest `limit` sessions of the account that have not ended, newest first.

    `before`: only those with a smaller id.
    """
    valid = (Session.user == user_id, Session.last_used_at > now - IDLE, Session.created_at > now - LIFETIME)
    query = Session.select().where(*valid)
    if before is not None:
        query = query.where(Session.id < before)
    return tuple(query.order_by(Session.id.desc()).limit(limit))


def get_own(session_id: int, *, actor: SessionIdentity) -> Session:
    """Return the actor's session with this id. Raises NotFound."""
    own = Session.get_or_none(Session.id == session_id, Session.user == actor.user_id)
    session: Session = existing(own, "There is no such session.")
    return session


def end(session_id: int) -> None:
    Session.delete().where(Session.id == session_id).execute()


def end_all(user_id: int, *, but: int | None = None) -> None:
    """End all sessions of the account, except the one with the id `but`."""
    query = Session.delete().where(Session.user == user_id)
    (query if but is None else query.where(Session.id != but)).execute()
