"""Account settings for developers: API access and access tokens."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from musicsvc.clock import DAY, HOUR, MINUTE
from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.server.schemas.pages.accounts import RegenerateForm, TokenForm
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.pages import SCOPES, Redirect, View
from musicsvc.store.accounts import sign_in, tokens, users
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.accounts.tokens import State
from musicsvc.store.activity import calls
from musicsvc.store.activity.log import Log
from musicsvc.store.dashboards import first_steps
from musicsvc.store.models import Token
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import isolated, quantity

HOME = "/settings/developers"
SHOWN = "The value of {} was shown already. If you have not copied it, regenerate the token to get another one."
MOST_SHOWN = 200
COUNTED = 7 * DAY
Notice = Literal["day", "week", "fortnight"]
WARNINGS: tuple[tuple[int, Notice], ...] = ((DAY, "day"), (7 * DAY, "week"), (14 * DAY, "fortnight"))
UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"))


@dataclass(frozen=True, slots=True)
class ShownToken:
    """An access token on a page. `requests`: the number of requests in the last 7 days, or None if unknown.

    `former`: whether its former value is still accepted.
    """

    token: Token
    state: State
    scope: str
    expires: str  # such as `in 12 days`
    warning: Notice | None
    requests: int | None
    former: bool


def _shown(token: Token, now: int, requests: int | None) -> ShownToken:
    state = tokens.state(token, now)
    left, is_valid = token.expires_at - now, state == "valid"
    warning = next((warning for length, warning in WARNINGS if is_valid and left <= length), None)
    former = is_valid and (token.former_expires_at or 0) > now
    return ShownToken(token, state, SCOPES[token.scope], moment_from(left), warning, requests, former)


def moment_from(left: int) -> str:
    """Format a time relative to now, such as `in 12 days` or `3 hours ago`. `left`: microseconds, negative if past."""
    size, unit = next((found for found in UNITS if abs(left) >= 2 * found[0]), UNITS[-1])
    text = quantity((abs(left) + size // 2) // size, unit)  # rounded, as a token of 90 days is a few seconds old
    return f"in {text}" if left > 0 else f"{text} ago"


def show(caller: SessionIdentity, settings: Settings, now: int, activity_log: Log) -> View:
    """Show the state of API access, and the account's access tokens."""
    user = users.get(caller.user_id)
    found = first_steps.load(user.id)
    listed = tokens.list(user, limit=MOST_SHOWN)
    rows = _rows(reversed(listed), now, activity_log)
    values = {
        "found": found,
        "access": found.access,
        "now": now,
        "tokens": [row for row in rows if row.state != "revoked"],
        "revoked": [row for row in rows if row.state == "revoked"],
        "most": MOST_SHOWN,
        "contact": settings.access.contact_email,
    }
    return View("developers.html", values)


def create_token(body: TokenForm, verified: Credentials | None, site: Site, now: int) -> View:
    """Create an access token and show its value, which is not shown again."""
    user = sign_in.require(verified)
    token, value = tokens.create(user, body.name, days=body.days, scope=body.scope, now=now, actor="page")
    return _value(token, value, site, now, is_new=True)


def show_token(subject: Token, now: int, activity_log: Log) -> View:
    """Show an access token, with the forms to regenerate and to delete it."""
    (row,) = _rows([subject], now, activity_log)
    return View("token.html", {"row": row})


def regenerate_token(subject: Token, body: RegenerateForm, verified: Credentials | None, site: Site, now: int) -> View:
    """Give an access token a new value and show it; it is not shown again."""
    sign_in.require(verified)
    token, value = tokens.regenerate(subject.id, overlap=body.overlap * HOUR, now=now, actor="page")
    return _value(token, value, site, now, is_new=False)


def delete_token(subject: Token, now: int) -> Redirect:
    """Delete an access token."""
    tokens.delete(subject, now=now, actor="page")
    return Redirect(HOME, f"The token {isolated(subject.name)} is deleted. Requests with it are refused from now on.")


def _value(token: Token, value: str, site: Site, now: int, *, is_new: bool) -> View:
    values = {"row": _shown(token, now, None), "value": value, "root": site.root, "is_new": is_new}
    return View("token_value.html", values, again=shown_once(token))


def shown_once(token: Token) -> Redirect:
    """Return the answer to a form that is sent again after it has shown the value of a token."""
    return Redirect(f"{HOME}/tokens/{token.id}", SHOWN.format(isolated(token.name)))


def _rows(listed: Iterable[Token], now: int, activity_log: Log) -> list[ShownToken]:
    """Return the tokens for the page, with the number of requests in 7 days if the activity log is available."""
    found = {token.id: token for token in listed}
    counts: dict[int, int] = {}
    with suppress(Failure):
        counted = activity_log.read(lambda: calls.count_by_token(found, now - COUNTED)).result()
        counts = dict.fromkeys(found, 0) | counted
    return [_shown(token, now, counts.get(token_id)) for token_id, token in found.items()]
