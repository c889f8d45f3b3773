"""Requests for API access and decisions on them, and grants and revocations of API access."""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Literal, NamedTuple, cast

from musicsvc.clock import DAY, isoformat
from musicsvc.errors import Conflict, Forbidden, NotFound, existing, require_valid
from musicsvc.store.accounts import email_addresses, password_links, tokens, users
from musicsvc.store.accounts.password_links import NewLink
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.accounts.user_search import newest
from musicsvc.store.engine.sql import lock_rows, refusing_duplicates
from musicsvc.store.models import AccessRequest, Token, User
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor, Kind

LONGEST = {"use_case": 500, "volume": 100, "organization": 500, "reason": 1_000}
RequestState = Literal["pending", "approved", "denied"]
AccessState = Literal["granted", "pending", "denied", "withdrawn", "none"]
PAUSE = DAY  # after a denied request, before the account may ask again


class AccessEntry(NamedTuple):
    """A request for access, with its account if one exists, or (without request) an account that has access."""

    request: AccessRequest | None
    user: User | None


class Approval(NamedTuple):
    """An approved request and its account. For an account created by the approval, `link` sets its password.

    `tokens`: those of the account that work from now on.
    """

    request: AccessRequest
    user: User
    link: NewLink | None
    tokens: Sequence[Token]


class NoAccess(Forbidden):
    """The account has no API access. `contact`: the e-mail address to ask for it, `path`: that of a POST, if any."""

    def __init__(self, contact: str | None, path: str | None = None) -> None:
        ways = [*([f"at {contact}"] if contact else []), *([f"with POST {path}"] if path else [])]
        super().__init__(tokens.NO_ACCESS + (f" Ask for it {' or '.join(ways)}." if ways else ""))


def grant(user: User, *, plays: bool = False, now: int, actor: Actor = "cli") -> Sequence[Token]:
    """Grant API access and, if `plays` is set, the right to report plays of other listeners.

    Return the account's tokens that work from now on.
    """
    users.lock(user, User.api_access, User.reports_plays)
    had = user.api_access, user.reports_plays
    user.api_access = True
    user.reports_plays = user.reports_plays or plays
    _save(user)
    if had != (user.api_access, user.reports_plays):
        also = "with plays of other listeners" if user.reports_plays else None
        security_events.add("access.granted", account_id=user.id, reason=also, now=now, actor=actor)
    return () if had[0] else tokens.in_force(user, now=now)


def revoke(user: User, *, now: int, actor: Actor = "cli") -> None:
    """Revoke API access and the right to report others' plays. Calls with the account's tokens then get status 403."""
    users.lock(user, User.api_access, User.reports_plays)
    had = user.api_access or user.reports_plays
    user.api_access = user.reports_plays = False
    _save(user)
    if had:
        security_events.add("access.revoked", account_id=user.id, now=now, actor=actor)


def _save(user: User) -> None:
    rights = {User.api_access: user.api_access, User.reports_plays: user.reports_plays}
    User.update(rights).where(User.id == user.id).execute()


def list(*, limit: int | None = None, text: str | None = None) -> Sequence[AccessEntry]:  # noqa: A001 - the module is the namespace
    """Return all requests with their accounts, then accounts that have access but no request, both oldest first.

    `text` keeps only results that contain this text. `limit` keeps the newest requests, then the newest accounts.
    """
    requests = tuple(AccessRequest.select().order_by(AccessRequest.id.desc()))
    asked = AccessRequest.select(AccessRequest.email_key)
    concerned = User.select().where(User.api_access | User.email_key.in_(asked))
    accounts = tuple(concerned.order_by(User.id.desc()))
    by_key = {user.email_key: user for user in accounts}
    entries = [AccessEntry(request, by_key.get(request.email_key)) for request in requests]
    listed = {entry.user.id for entry in entries if entry.user}
    found = newest(entries, limit, text, _texts)
    others = (AccessEntry(None, user) for user in accounts if user.api_access and user.id not in listed)
    return (*found, *newest(others, None if limit is None else limit - len(found), text, _texts))


def get(request_id: int) -> AccessRequest:
    """Return the request with this id. Raises NotFound."""
    asked = AccessRequest.get_or_none(AccessRequest.id == request_id)
    found: AccessRequest = existing(asked, f"There is no access request {request_id}.")
    return found


def requests(*, pending: bool, limit: int, before: int | None = None) -> Sequence[AccessRequest]:
    """Return the pending or (if not `pending`) the decided requests below the id `before`, newest first."""
    state = AccessRequest.state == "pending" if pending else AccessRequest.state != "pending"
    query = AccessRequest.select().where(state)
    if before is not None:
        query = query.where(AccessRequest.id < before)
    return tuple(query.order_by(AccessRequest.id.desc()).limit(limit))


def _texts(entry: AccessEntry) -> tuple[str | None, ...]:
    asked, user = entry
    of_user = (user.email, user.display_name) if user else ()
    return (asked.email, asked.use_case, asked.organization, *of_user) if asked else of_user


def request(
    email: str, use_case: str, volume: str, organization: str, *, now: int, actor: Actor = "cli"
) -> AccessRequest:
    """Create a pending request for API access. Raises Conflict if a request is pending or access is already granted."""
    texts = {"use_case": use_case.strip(), "volume": volume.strip(), "organization": organization.strip()}
    require_valid({"email": email_addresses.problem(email), **problems(texts)})
    user = users.find_by_email(email)
    if user is not None and user.api_access:
        raise Conflict(f"{email} has API access already.")
    with refusing_duplicates(Conflict("A request is pending already.")):
        pending: AccessRequest = AccessRequest.create(
            email=email.strip(),
            email_key=email_addresses.normalize(email),
            state="pending",
            created_at=now,
            **texts,
        )
    _add_event("access.requested", pending, now, actor)
    return pending


def request_own(
    user_id: int, use_case: str, volume: str, organization: str, *, now: int, actor: Actor
) -> AccessRequest:
    """Create a pending request for the account itself. Raises Conflict as `request` does, and soon after a denial."""
    user = users.get(user_id)
    latest = latest_request(user)
    if user.api_access:
        raise Conflict("The account has API access already.")
    if latest is not None and latest.state == "pending":
        raise Conflict("A request of the account is pending already.")
    if now < (wait := asks_again_at(latest)):
        raise Conflict(f"Your last request was denied. You can ask again from {isoformat(wait)} on.")
    return request(user.email, use_case, volume, organization, now=now, actor=actor)


def asks_again_at(latest: AccessRequest | None) -> int:
    """Return the time from which an account may ask again after its newest request was denied, otherwise 0."""
    denied_at = latest.decided_at if latest is not None and latest.state == "denied" else None
    return 0 if denied_at is None else denied_at + PAUSE


def state_of(user: User, latest: AccessRequest | None) -> AccessState:
    """Return whether the account has access or, by its newest request, whether it may get it."""
    if user.api_access:
        return "granted"
    if latest is None:
        return "none"
    return "withdrawn" if latest.state == "approved" else cast("Literal['pending', 'denied']", latest.state)


def latest_own_request(*, actor: Identity) -> AccessRequest:
    """Return the actor's newest request. Raises NotFound if there is none."""
    return existing(latest_request(users.get(actor.user_id)), "The account has not asked for API access.")


def latest_request(user: User) -> AccessRequest | None:
    """Return the newest access request with the account's e-mail, or None."""
    found = AccessRequest.select().where(AccessRequest.email_key == user.email_key)
    latest: AccessRequest | None = found.order_by(AccessRequest.id.desc()).first()
    return latest


def approve(asked: int | str, *, now: int, actor: Actor = "cli") -> Approval:
    """Approve the request with this id or e-mail. If no account has the e-mail, create one with a password link."""
    found = _find(asked, granting=True)
    decided = _decide(found, "approved", None, now, hint=_regrant(found))
    user, link = users.find_by_email(decided.email), None
    if user is None:  # without an account, somebody else could register the e-mail and get the access
        user = users.create(decided.email, now=now, actor=actor)
        link = password_links.create(user, now=now, actor=actor)
    _add_event("access.approved", decided, now, actor)
    return Approval(decided, user, link, grant(user, now=now, actor=actor))


def deny(asked: int | str, reason: str, *, now: int, actor: Actor = "cli") -> AccessRequest:
    """Deny the request with this id or e-mail and store the reason."""
    require_valid(problems({"reason": reason.strip()}))
    denied = _decide(_find(asked), "denied", reason.strip(), now)
    _add_event("access.denied", denied, now, actor)
    return denied


def _add_event(kind: Kind, asked: AccessRequest, now: int, actor: Actor) -> None:
    """Log a security event about a request, and about the account with the request's e-mail if there is one."""
    user = users.find_by_email(asked.email)
    reason = f"request {asked.id}: {asked.reason}" if asked.reason else f"request {asked.id}"
    security_events.add(kind, account_id=user.id if user else None, reason=reason, now=now, actor=actor)


def _find(asked: int | str, *, granting: bool = False) -> AccessRequest:
    """Lock and return the request with this id or e-mail. Raises NotFound.

    If several requests have the e-mail, the pending one is returned or, without one, the newest. `granting`: if an
    account has no request, the error says how to give it access.
    """
    by_id = isinstance(asked, int)
    key = None if by_id else email_addresses.normalize(str(asked))
    wanted = AccessRequest.id == asked if by_id else AccessRequest.email_key == key
    order = (AccessRequest.state == "pending").desc(), AccessRequest.id.desc()
    found: AccessRequest | None = lock_rows(AccessRequest.select().where(wanted).order_by(*order)).first()
    if found is None:
        user = users.find_by_email(str(asked)) if granting and not by_id else None
        hint = "" if user is None else f" To give the account access, run: {_grant(user)}"
        raise NotFound(f"There is no access request {'' if by_id else 'by '}{asked}.{hint}")
    return found


def _regrant(found: AccessRequest) -> str:
    """Return a hint on how to give access despite a decided request. It is empty if the account has access."""
    user = users.find_by_email(found.email)
    if user is None:
        return " A new request can be approved."
    if user.api_access:
        return ""
    since = " Access was revoked since." if found.state == "approved" else ""
    return f"{since} To give the account access, run: {_grant(user)}"


def _grant(user: User) -> str:
    return f"musicsvc access grant {quote(user.email)}"


def _decide(found: AccessRequest, state: str, reason: str | None, now: int, *, hint: str = "") -> AccessRequest:
    """Store the decision on a pending request. Raises Conflict, with `hint` in its message, for a decided request."""
    if found.state != "pending":
        raise Conflict(f"Request {found.id} by {found.email} is {found.state} already.{hint}")
    found.state, found.reason, found.decided_at = state, reason, now
    found.save(only=[AccessRequest.state, AccessRequest.reason, AccessRequest.decided_at])
    return found


def problems(texts: Mapping[str, str]) -> dict[str, str | None]:
    """Return what is wrong with the texts of a request or of a refusal, by field."""
    return {
        field: None if 1 <= len(text) <= LONGEST[field] else f"Must have 1 to {LONGEST[field]} characters."
        for field, text in texts.items()
    }
