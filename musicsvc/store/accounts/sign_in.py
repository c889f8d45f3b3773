"""Look up password hashes, for signing in and for actions that require the password in addition to a session."""

from collections.abc import Mapping
from typing import NamedTuple

from musicsvc.errors import Invalid
from musicsvc.store.accounts import users
from musicsvc.store.engine.sql import lock_row
from musicsvc.store.models import User

WRONG = "The e-mail or the password is wrong."
WRONG_PASSWORD = {"password": "The password is wrong."}


class Credentials(NamedTuple):
    """An account and the hash of its password."""

    user_id: int
    password_hash: str


def by_email(email: str) -> Credentials | None:
    """Return the credentials of the account with this e-mail. None if it cannot sign in or does not exist."""
    return _of(users.find_by_email(email))


def by_id(user_id: int) -> Credentials | None:
    """Return the credentials of this account, or None if it cannot sign in."""
    return _of(User.get_or_none(User.id == user_id))


def still_valid(verified: Credentials | None) -> User | None:
    """Lock and return the account, or None if it was suspended or its password changed after `verified` was loaded.

    A change of the password waits for the lock, so that it also ends the session that the caller creates.
    """
    if verified is None:
        return None
    lock_row(User, verified.user_id)
    return users.get(verified.user_id) if by_id(verified.user_id) == verified else None


def require(verified: Credentials | None, wrong: Mapping[str, str] = WRONG_PASSWORD) -> User:
    """Lock and return the account. Raises Invalid with the errors `wrong` if `verified` is not valid any more."""
    if (user := still_valid(verified)) is None:
        raise Invalid(wrong)
    return user


def _of(user: User | None) -> Credentials | None:
    if user is None or user.suspended_at is not None or user.password_hash is None:
        return None
    return Credentials(user.id, user.password_hash)
