"""Accounts that share a mailbox, which earlier versions allowed for different spellings of one e-mail."""

from __future__ import annotations

from shlex import quote
from typing import NamedTuple

from musicsvc.store.accounts import email_addresses
from musicsvc.store.models import User


class SharedMailbox(NamedTuple):
    """An account whose normalized e-mail belongs to an older account, `owner`."""

    account_id: int
    email: str
    owner_id: int
    owner_email: str

    @property
    def finding(self) -> str:
        return (
            f"Accounts {self.owner_id} ({self.owner_email}) and {self.account_id} ({self.email}) share a mailbox."
            f" Account {self.account_id} is found only by its e-mail exactly as written."
        )

    @property
    def hint(self) -> str:
        one, other = (f"musicsvc user suspend {quote(email)}" for email in (self.owner_email, self.email))
        return f"Suspend the one that is no longer used: {one}, or: {other}"


def shared() -> list[SharedMailbox]:
    """Return the accounts that share the mailbox of an older one, unless one of the two is suspended."""
    pairs = []
    for account in User.select().where(User.email_key.is_null(), User.suspended_at.is_null()).order_by(User.id):
        owner = User.get_or_none(User.email_key == email_addresses.normalize(account.email))
        if owner is not None and owner.suspended_at is None:
            pairs.append(SharedMailbox(account.id, account.email, owner.id, owner.email))
    return pairs
