"""`musicsvc access`: manage API access of accounts and requests for API access."""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote
from typing import Annotated

from musicsvc.cli import output
from musicsvc.cli.options import Email, Limit, account_argument, flag, group, option, refuse, search_option
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.cli.tokens import token_json
from musicsvc.cli.users import change, link_json, print_link, user_json
from musicsvc.clock import isoformat
from musicsvc.errors import Failure, NotFound
from musicsvc.server.shapes import envelope
from musicsvc.store import models
from musicsvc.store.accounts import api_access, email_addresses

app = group(
    "access grant ada@example.test --plays",
    "access approve 7",
    'access deny bob@example.test --reason "Describe the use case."',
)

REQUEST_KEYS = ("state", "use_case", "volume", "organization", "reason", "requested_at", "decided_at")
Requester = Annotated[str, account_argument("EMAIL|ID", "The requester's e-mail, or the id of the request.")]


def entry_json(entry: api_access.AccessEntry) -> JSON:
    """Return one item of `access list` as JSON: an access request, or an account that has access without a request."""
    request = request_json(entry.request) if entry.request else {}
    user = entry.user
    return {
        "request_id": request.get("id"),
        "email": request.get("email", user and user.email),
        "user_id": user and user.id,
        "api_access": bool(user and user.api_access),
        "reports_plays": bool(user and user.reports_plays),
    } | {key: request.get(key) for key in REQUEST_KEYS}


def request_json(request: models.AccessRequest) -> JSON:
    found = envelope.picked(request, "id", "email", "state", "use_case", "volume", "organization", "reason")
    found["requested_at"] = isoformat(request.created_at)
    return found | envelope.picked(request, "decided_at")


@app.command()
def grant(
    session: Session,
    email: Email = "",
    plays: Annotated[bool, flag("Also allow the account to report plays of other listeners.", "--plays")] = False,
) -> None:
    """Grant API access to an account, and list its tokens, which work at once."""
    revived: list[models.Token] = []

    def unit(user: models.User) -> None:
        revived[:] = api_access.grant(user, plays=plays, now=session.now)

    try:
        user = session.write(change(email, unit))
    except NotFound as missing:
        account = quote(email)
        asked = f"if it has requested access, run: musicsvc access approve {account}"
        raise Failure(f"{missing.message} Run: musicsvc user create {account}, or {asked}") from None
    also = " and may report plays of other listeners" if user.reports_plays else ""
    message = f"{user.email} has API access{also}."
    _print_grant(session, message, user_json(user), revived)


@app.command()
def revoke(session: Session, email: Email = "") -> None:
    """Revoke an account's API access and its right to report plays.

    Its tokens are kept; requests with them get 403 until access is granted again.
    """
    user = session.write(change(email, lambda user: api_access.revoke(user, now=session.now)), urgent=True)
    output.print_result(session, f"{user.email} has no API access any more.", user_json(user))


@app.command("list")
def list_(
    session: Session,
    search: Annotated[str | None, search_option("the e-mail, name, organization or use case")] = None,
    limit: Limit = None,
) -> None:
    """List requests for access, oldest first, then accounts with access but no request."""
    asked = ("request_id", "email", "state", "api_access", "organization", "use_case", "volume", "requested_at")
    columns = (*asked, "reason", "reports_plays")
    output.print_list(session, lambda: api_access.list(limit=limit, text=search), entry_json, columns)


@app.command()
def request(
    session: Session,
    use_case: Annotated[str, option("TEXT", "The purpose of the access.")],
    volume: Annotated[str, option("TEXT", "The expected number of requests.")],
    organization: Annotated[str, option("NAME", "The organization of the requester.")],
    email: Email = "",
) -> None:
    """Record a request for access; the e-mail address needs no account yet."""
    texts = {"use_case": use_case.strip(), "volume": volume.strip(), "organization": organization.strip()}
    found = api_access.problems(texts)
    refuse({"EMAIL": email_addresses.problem(email), **{f"--{name.replace('_', '-')}": found[name] for name in found}})
    asked = session.write(lambda: api_access.request(email, use_case, volume, organization, now=session.now))
    message = f"Request {asked.id} by {asked.email} is pending."
    output.print_result(session, message, request_json(asked))


@app.command()
def approve(session: Session, requester: Requester = "") -> None:
    """Approve a request, and list the account's tokens, which work at once.

    An address without an account gets one, with a password link.
    """
    decided, user, link, revived = session.write(lambda: api_access.approve(_id_or_email(requester), now=session.now))
    account = "was created for it" if link else "existed already"
    message = f"Request {decided.id} is approved: {user.email} has API access. Account {user.id} {account}."
    _print_grant(session, message, request_json(decided) | link_json(session, link), revived)
    if link and not session.json:
        print_link(session, user.email, link)


@app.command()
def deny(
    session: Session,
    reason: Annotated[str, option("TEXT", "The reason, shown by `access list`.")],
    requester: Requester = "",
) -> None:
    """Deny a request."""
    refuse({"--reason": api_access.problems({"reason": reason.strip()})["reason"]})
    decided = session.write(lambda: api_access.deny(_id_or_email(requester), reason, now=session.now))
    message = f"Request {decided.id} by {decided.email} is denied."
    output.print_result(session, message, request_json(decided))


def _print_grant(session: Session, message: str, result: JSON, revived: Sequence[models.Token]) -> None:
    """Report a grant of API access, with the tokens that work because of it."""
    rows = [token_json(token, session.now) for token in revived]
    output.print_result(session, message, result | {"tokens": rows})
    if rows and not session.json:
        session.echo("These tokens of the account work now. Revoke those that its owner does not know.")
        output.print_table(session, rows, ("id", "name", "last_four", "created_at"))


def _id_or_email(text: str) -> int | str:
    return int(text) if re.fullmatch("[1-9][0-9]{0,17}", text) else text
