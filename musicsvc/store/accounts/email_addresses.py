"""E-mail addresses: syntax checks, and the normalized form by which accounts and access requests are found."""

import unicodedata
from shlex import quote
from typing import NamedTuple

import regex
from peewee import Expression, Ordering

from musicsvc.store.models import AccessRequest, User

LENGTH = 255
LOCAL_LENGTH = 64
INVALID = "The email must be a valid email address."
_ATOM = r"(?:[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]|[^\x00-\x7f\p{C}\p{Z}])+"
_LOCAL = regex.compile(rf"(?!\p{{M}}){_ATOM}(?:\.{_ATOM})*")  # RFC 5322 dot-atom, RFC 6532 for the rest of Unicode
_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_DOMAIN = regex.compile(rf"localhost|(?:{_LABEL}\.)+(?!\d+$){_LABEL}")  # a number at the end: an IP address


class SharedMailbox(NamedTuple):
    """Two accounts whose e-mails have the same normalized form. `owner_id` and `owner_email` name the older account."""

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
        return f"Suspend the account that is no longer used: {one}, or: {other}"


def normalize(email: str) -> str:
    """Return the form that all spellings of an e-mail address share.

    The part before the @ is case-folded and in NFKC. The domain is in ASCII (IDNA with UTS 46, non-transitional).
    """
    local, at, domain = email.strip().rpartition("@")
    return _fold(local) + at + (_ascii_domain(domain) or _fold(domain))


def problem(email: str) -> str | None:
    """Return an error message if the e-mail's syntax is invalid, else None. Reserved domains like `.test` are valid."""
    email = email.strip()
    if len(email) > LENGTH:
        return f"The email must not be longer than {LENGTH} characters."
    local, _, domain = email.rpartition("@")
    if max(len(local), len(_fold(local))) > LOCAL_LENGTH:
        return f"The part of the email before the @ must not be longer than {LOCAL_LENGTH} characters."
    valid = _LOCAL.fullmatch(local) and _LOCAL.fullmatch(_fold(local)) and _DOMAIN.fullmatch(_ascii_domain(domain))
    return None if valid else INVALID


def matches(table: type[User | AccessRequest], email: str) -> Expression:
    """Return an SQL condition for rows with `email` in any spelling. Rows without `email_key` must match exactly."""
    return (table.email_key == normalize(email)) | (table.email_key.is_null() & (table.email == email.strip()))


def exact_first(table: type[User | AccessRequest]) -> Ordering:
    """Return an SQL ordering that puts rows without `email_key` first, because they matched the e-mail exactly."""
    return table.email_key.is_null().desc()


def shared_mailboxes() -> list[SharedMailbox]:
    """Return the pairs of unsuspended accounts that have the same normalized e-mail."""
    pairs = []
    for account in User.select().where(User.email_key.is_null(), User.suspended_at.is_null()).order_by(User.id):
        owner = User.get_or_none(User.email_key == normalize(account.email))
        if owner is not None and owner.suspended_at is None:
            pairs.append(SharedMailbox(account.id, account.email, owner.id, owner.email))
    return pairs


def _fold(text: str) -> str:
    """Return the text case-folded and in NFKC. Folding the result again does not change it."""
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return text


def _ascii_domain(domain: str) -> str:
    """Return the domain in its ASCII form, or an empty string if the domain is invalid."""
    if domain.isascii() and "xn--" not in (lowered := domain.lower()):
        return lowered
    import idna  # noqa: PLC0415 - slow to load; most domains do without it

    try:
        return idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        return ""
