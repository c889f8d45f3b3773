"""Personal access tokens: format, creation, lookup and revocation. Only the SHA-256 of a token is stored."""

import hashlib
import secrets
import string
import uuid
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from peewee import Case, fn

from musicsvc.clock import DAY, isoformat
from musicsvc.errors import Conflict, Forbidden, Invalid, existing, require_valid
from musicsvc.store.accounts.user_search import newest_models
from musicsvc.store.engine.list_blocks import LongList
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, paginate
from musicsvc.store.engine.sql import compiled, lock_row
from musicsvc.store.models import Token, User
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import name_problem

PREFIX = "msvc_"
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH = 40  # 238 bits
CHECKSUM_LENGTH = 6
LENGTH = len(PREFIX) + RANDOM_LENGTH + CHECKSUM_LENGTH
LISTENING_LENGTH = 36  # of a UUID
LONGEST_DAYS = 90
LIFETIME = LONGEST_DAYS * DAY
LONGEST_OVERLAP = DAY
LONG_OVERLAP = "The old value of a token is accepted for at most 24h."
SHORTEST_NAME, LONGEST_NAME = 3, 50
SUSPENDED = "The account is suspended."
NO_ACCESS = "The account has no API access."
DELETED = "deleted by its owner"
BEFORE_ACCESS = "created before the account had API access; then a password was set by a one-time link"
COLUMNS: tuple[Any, ...] = (
    Token.id, Token.name, Token.last_four, Token.scope, Token.created_at, Token.expires_at, Token.last_used_at,
    Token.revoked_at, Token.revoked_reason,
)  # fmt: skip
TOKENS = LongList(0, "tokens of account {}", "token", "user_id")  # without blocks, because these lists are short

State = Literal["valid", "expired", "revoked"]
# `read`: only requests that read, and exports. `listen`: nothing but to report plays of the account's own listening.
Scope = Literal["read", "read-write", "listen"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
LISTEN: Scope = "listen"
LISTENING_DAYS = f"A listening token ends {LONGEST_DAYS} days after its last use, so it has no other number of days."


class Identity(NamedTuple):
    """An access token and its account. The value it was found by is invalid at and after the time `expires_at`."""

    user_id: int
    display_name: str
    avatar: str | None
    admin: bool
    api_access: bool
    reports_plays: bool
    suspended: bool
    token_id: int
    token_name: str
    expires_at: int
    revoked: bool = False
    scope: Scope = "read-write"

    @property
    def account(self) -> tuple[object, ...]:
        """The values of the account that responses may depend on. A cached response is valid until a value changes."""
        return self[:7]


def generate(scope: Scope = "read-write") -> str:
    """Return a new token value: a prefix, 40 random base62 characters, and the CRC-32 of both in 6 characters.

    Of the scope `listen`, it is a UUID of version 4, because players keep 36 characters.
    """
    if scope == LISTEN:
        return str(uuid.uuid4())
    body = PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return body + _checksum(body)


def plausible(value: str) -> bool:
    """Return whether the value has the length and the prefix of a token. The checksum is not verified."""
    return len(value) == LENGTH and value.isascii() and value.startswith(PREFIX)


def well_formed(value: str) -> bool:
    """Return whether the value may be one that `generate` returned."""
    if not plausible(value):
        return is_listening(value)
    body, checksum = value[:-CHECKSUM_LENGTH], value[-CHECKSUM_LENGTH:]
    return set(body[len(PREFIX) :]) <= set(ALPHABET) and checksum == _checksum(body)


def is_listening(value: str) -> bool:
    if len(value) != LISTENING_LENGTH:
        return False
    try:
        found = uuid.UUID(value)
    except ValueError:
        return False
    return found.version == 4 and str(found) == value  # noqa: PLR2004 - random


def digest(value: str) -> bytes:
    """Return the SHA-256 of the token value, which is stored instead of the value."""
    return hashlib.sha256(value.encode()).digest()


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, rest = divmod(number, len(ALPHABET))
        digits = ALPHABET[rest] + digits
    return digits


def identify(digest: bytes) -> Identity | None:
    """Return the token with this SHA-256, or one before it, and its account, or None. It may be revoked or expired."""
    for row in _identify(digest):
        return Identity._make((*row[:3], *map(bool, row[3:7]), *row[7:10], bool(row[10]), row[11]))
    return None


@compiled
def _identify(digest: bytes) -> Any:
    account = User.id, User.display_name, User.avatar, User.admin, User.api_access, User.reports_plays
    suspended, revoked = User.suspended_at.is_null(is_null=False), Token.revoked_at.is_null(is_null=False)
    expires_at = Case(None, [(Token.digest == digest, Token.expires_at)], Token.former_expires_at)
    query = Token.select(*account, suspended, Token.id, Token.name, expires_at, revoked, Token.scope).join(User)
    return query.where((Token.digest == digest) | (Token.former_digest == digest))


def identity_of(user: User) -> Identity:
    """Return the identity of an account that acts without a token."""
    rights = (user.admin, user.api_access, user.reports_plays, user.suspended_at is not None)
    return Identity(user.id, user.display_name, user.avatar, *rights, token_id=0, token_name="", expires_at=0)


def state(token: Token, now: int) -> State:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if now >= token.expires_at else "valid"


def create(
    user: User,
    name: str,
    *,
    days: int = LONGEST_DAYS,
    scope: Scope = "read-write",
    now: int,
    without_access: bool = False,
    value: str = "",
    actor: Actor = "cli",
) -> tuple[Token, str]:
    """Create a token that expires after `days`. Return the token and its value, which is not stored.

    `value`: by default a new one. Raises Forbidden if the account is suspended or, unless `without_access` is set, has
    no API access.
    """
    name = name.strip()
    scope_fault = None if scope in SCOPES else f"The scope must be one of: {', '.join(SCOPES)}."
    require_valid({"name": name_fault(name), "days": days_fault(days, scope), "scope": scope_fault})
    if obstacle := _obstacle(user, without_access=without_access):
        raise Forbidden(obstacle)
    value = value or generate(scope)
    token: Token = Token.create(user=user, name=name, scope=scope, **_secret(value, now, days))
    security_events.add("token.created", account_id=user.id, token_id=token.id, now=now, actor=actor)
    return token, value


def name_fault(name: str) -> str | None:
    """Return what is wrong with the name of a token, or None."""
    if SHORTEST_NAME <= len(name) <= LONGEST_NAME:
        return name_problem(name)
    return f"The name must have {SHORTEST_NAME} to {LONGEST_NAME} characters."


def days_fault(days: int, scope: Scope) -> str | None:
    """Return what is wrong with the number of days that a token is to be valid, or None."""
    if scope == LISTEN and days != LONGEST_DAYS:
        return LISTENING_DAYS
    return None if 1 <= days <= LONGEST_DAYS else f"A token is valid for 1 to {LONGEST_DAYS} days."


def _secret(value: str, now: int, days: int = LONGEST_DAYS) -> dict[str, bytes | str | int | None]:
    return {
        "digest": digest(value),
        "last_four": value[-4:],
        "created_at": now,
        "expires_at": now + days * DAY,
        "last_used_at": None,
    }


def get(token_id: int) -> Token:
    """Return the token with its account loaded. Raises NotFound."""
    token: Token = existing(_with_accounts().where(Token.id == token_id).first(), f"There is no token {token_id}.")
    return token


def list(  # noqa: A001 - the module is the namespace
    user: User | None = None,
    *,
    limit: int | None = None,
    text: str | None = None,
    before: int | None = None,
    expiring: tuple[int, int] | None = None,
    ids: Collection[int] | None = None,
) -> Sequence[Token]:
    """Return the tokens of `user`, or of all accounts, oldest first, including revoked and expired ones.

    `text` keeps only tokens with this text in their name or their account's e-mail, `limit` only the newest ones,
    `before` only those with a smaller id, `expiring` only unrevoked ones that expire after its first time, and not
    after its second, `ids` only these.
    """
    query = _with_accounts()
    if user is not None:
        query = query.where(Token.user == user.id)
    if before is not None:
        query = query.where(Token.id < before)
    if expiring is not None:
        query = query.where(Token.revoked_at.is_null(), Token.expires_at > expiring[0], Token.expires_at <= expiring[1])
    if ids is not None:
        query = query.where(Token.id.in_([*ids]))
    return newest_models(query, (Token.id, Token.name, User.email), limit, text)


def in_force(user: User, *, now: int) -> Sequence[Token]:
    """Return the account's tokens that are neither revoked nor expired, oldest first. They work if it has access."""
    return tuple(token for token in list(user) if state(token, now) == "valid")


def list_own(page: Page, *, actor: Identity) -> Listing[Token]:
    """Return the actor's tokens, newest first, including revoked and expired ones."""
    return paginate(_own, page, _token, actor.user_id, counted=TOKENS)


def _own(user_id: int) -> ListQuery:
    keys = Token.select(Token.id).where(Token.user == user_id)
    return ListQuery(keys, Token.select(*COLUMNS), [Token.id.desc()])


def _token(*values: Any) -> Token:
    return Token(**{column.name: value for column, value in zip(COLUMNS, values, strict=True)})


def get_own(token_id: int, *, actor: Identity) -> Token:
    """Return the actor's token with its account loaded. Raises NotFound if the actor has no such token."""
    own = _with_accounts().where(Token.id == token_id, Token.user == actor.user_id)
    token: Token = existing(own.first(), "There is no such token.")
    return token


def find_by_value(value: str) -> Token | None:
    """Return the token with this value now or before, with its account loaded, or None.

    The token may be revoked or expired.
    """
    sought = digest(value)
    token: Token | None = _with_accounts().where((Token.digest == sought) | (Token.former_digest == sought)).first()
    return token


def refusal(token: Token, value: str, now: int) -> str | None:
    """Return why requests with this value of the token are refused, or None if they are accepted."""
    is_former = bytes(token.digest) != digest(value)
    ends = token.former_expires_at if is_former else token.expires_at
    if token.revoked_at is not None:
        overlapped = is_former and ends is not None and token.revoked_at < ends
        how = "regenerated, and then revoked within its overlap," if overlapped else "revoked"
        return f"The token was {how} at {isoformat(token.revoked_at)}: {token.revoked_reason}."
    if ends is None or now >= ends:
        what = "The token was regenerated, and its former value" if is_former else "The token"
        return f"{what} expired at {isoformat(ends or now)}."
    return _obstacle(token.user)


def _obstacle(user: User, *, without_access: bool = False) -> str | None:
    if user.suspended_at is not None:
        return SUSPENDED
    return None if user.api_access or without_access else NO_ACCESS


def former_ends(token: Token) -> int | None:
    """Return until when the former value of the token is accepted: its revocation ends that too."""
    ends: int | None = token.former_expires_at
    return ends if ends is None or token.revoked_at is None else min(ends, token.revoked_at)


def revoke(token_id: int, reason: str, *, also: bool = False, now: int, actor: Actor = "cli") -> Token:
    """Revoke the token. A token that is already revoked keeps the time and reason of the earlier revocation.

    `also`: add the reason to the earlier one, which can be undone.
    """
    ended = Token.update(revoked_at=now, revoked_reason=reason).where(Token.id == token_id, Token.revoked_at.is_null())
    changed, token = ended.execute(), get(token_id)
    if also and not (token.revoked_reason or "").endswith((reason, DELETED)):
        token.revoked_reason = f"{token.revoked_reason}; {reason}"
        changed = token.save(only=[Token.revoked_at, Token.revoked_reason])
    if changed:
        security_events.add(
            "token.revoked", account_id=token.user.id, token_id=token_id, reason=reason, now=now, actor=actor
        )
    return token


def revoke_before_access(user: User, *, now: int, actor: Actor) -> None:
    """Revoke the tokens that were created before the account first had API access.

    Whoever registered an e-mail may have such a token, and need not be the owner of the e-mail.
    """
    granted = security_events.first_at("access.granted", user.id)
    if granted is None and user.api_access:
        return  # access was granted before events were recorded
    early = set() if granted is None else security_events.tokens_created_before(granted, user.id)
    for token in list(user):
        if granted is None or token.created_at < granted or token.id in early:
            revoke(token.id, BEFORE_ACCESS, also=True, now=now, actor=actor)


def delete(token: Token, *, now: int, actor: Actor) -> None:
    """Revoke a token on its owner's request, for good. The revoked token remains in lists. May be repeated."""
    revoke(token.id, DELETED, also=True, now=now, actor=actor)


def is_deleted(token: Token) -> bool:
    """Return whether its owner has deleted the token, which stays revoked then."""
    return token.revoked_reason is not None and f"; {token.revoked_reason}".endswith(f"; {DELETED}")


def reinstate(token_id: int, *, now: int, actor: Actor = "cli") -> Token:
    """Undo a revocation. The token is valid again unless it has expired.

    Raises Conflict for a token that its owner has deleted.
    """
    if is_deleted(former := get(token_id)):
        raise Conflict(f"Token {token_id} was deleted by its owner and stays revoked. The owner can create a new one.")
    restored = Token.update(revoked_at=None, revoked_reason=None)
    unchanged = Token.revoked_at.is_null(is_null=False), Token.revoked_reason == former.revoked_reason
    changed = restored.where(Token.id == token_id, *unchanged).execute()
    token = get(token_id)
    if changed:
        security_events.add("token.reinstated", account_id=token.user.id, token_id=token_id, now=now, actor=actor)
    return token


def regenerate(token_id: int, *, overlap: int = 0, now: int, actor: Actor = "cli") -> tuple[Token, str]:
    """Give the token a new value that expires after 90 days. Return the token and the value.

    `overlap`: how long the old value is accepted at most, in microseconds; a value before it is invalid at once.
    Raises Conflict for a revoked token, Invalid if the overlap is longer than a day.
    """
    if not 0 <= overlap <= LONGEST_OVERLAP:
        raise Invalid({"overlap": LONG_OVERLAP})
    lock_row(Token, token_id)
    token = get(token_id)
    if token.revoked_at is not None:
        raise Conflict(f"Token {token_id} is revoked and cannot be regenerated. Create a new one.")
    ends = min(token.expires_at, now + overlap)
    former = (token.digest, ends) if ends > now else (None, None)
    value = generate(LISTEN if token.scope == LISTEN else "read-write")
    secret = _secret(value, now) | dict(zip(("former_digest", "former_expires_at"), former, strict=True))
    Token.update(**secret).where(Token.id == token_id).execute()
    token = get(token_id)
    security_events.add("token.regenerated", account_id=token.user.id, token_id=token_id, now=now, actor=actor)
    return token, value


def latest_use() -> tuple[int, int]:
    """Return the id of the unrevoked token that was used last, and the time of that use; (0, 0) if none was used."""
    used = Token.select(Token.id, Token.last_used_at).where(Token.revoked_at.is_null(), ~Token.last_used_at.is_null())
    token: Token | None = used.order_by(Token.last_used_at.desc()).first()
    return (0, 0) if token is None else (token.id, token.last_used_at or 0)


def touch(last_used: Mapping[int, int]) -> None:
    """Store each token's time of last use from `last_used` (token id → time), unless a later time is stored.

    Listening tokens end 90 days after it.
    """
    # Ordered by id, so that two processes that update the same tokens do not deadlock.
    _touch.many([(token, at, at + LIFETIME) for token, at in sorted(last_used.items())])


@compiled
def _touch(token_id: int, moment: int, ends: int) -> Any:
    earlier = fn.COALESCE(Token.last_used_at, 0) < moment
    expires_at = Case(None, [(Token.scope == LISTEN, ends)], Token.expires_at)
    return Token.update(last_used_at=moment, expires_at=expires_at).where(Token.id == token_id, earlier)


def _with_accounts() -> Any:
    return Token.select(Token, User).join(User)
