"""Account settings for developers: API access and access tokens."""

from collections.abc import Iterable
from contextlib import suppress

from musicsvc.clock import DAY
from musicsvc.errors import Failure, Invalid
from musicsvc.server.schemas.pages.developers import AccessForm, TokenForm
from musicsvc.server.shapes import developers as shapes
from musicsvc.server.shapes.developers import ShownToken
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.accounts import api_access, sign_in, tokens, users
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.activity import calls
from musicsvc.store.activity.log_store import Log
from musicsvc.store.models import Token, User
from musicsvc.store.security.sessions import SessionIdentity

HOME = "/settings/developers"
MOST_SHOWN = 200
COUNTED = 7 * DAY


def show(caller: SessionIdentity, now: int, activity_log: Log) -> View:
    """Show the state of API access, and the account's access tokens."""
    user = users.get(caller.user_id)
    latest = api_access.latest_request(user)
    listed = tokens.list(user, limit=MOST_SHOWN)
    rows = _rows(reversed(listed), now, activity_log)
    values = {
        "access": shapes.access_state(user, latest),
        "latest": latest,
        "user": user,
        "tokens": [row for row in rows if row.state != "revoked"],
        "revoked": [row for row in rows if row.state == "revoked"],
        "most": MOST_SHOWN,
    }
    return View("developers.html", values)


def request_access(body: AccessForm, caller: SessionIdentity, now: int) -> Redirect:
    """Request API access."""
    api_access.request(caller.email, body.use_case, body.volume, body.organization, now=now, actor="page")
    return Redirect(HOME, "Your request was sent. The decision will be shown here.")


def create_token(body: TokenForm, verified: Credentials | None, site: Site, now: int) -> View:
    """Create an access token and show its value, which is not shown again."""
    user = _require_password(verified)
    token, value = tokens.create(user, body.name, days=body.days, scope=body.scope, now=now, actor="page")
    return _value(token, value, site, now, is_new=True)


def show_token(subject: Token, now: int, activity_log: Log) -> View:
    """Show an access token, with the forms to regenerate and to delete it."""
    (row,) = _rows([subject], now, activity_log)
    return View("token.html", {"row": row})


def regenerate_token(subject: Token, verified: Credentials | None, site: Site, now: int) -> View:
    """Give an access token a new value and show it; it is not shown again."""
    _require_password(verified)
    token, value = tokens.regenerate(subject.id, now=now, actor="page")
    return _value(token, value, site, now, is_new=False)


def delete_token(subject: Token, now: int) -> Redirect:
    """Delete an access token."""
    tokens.delete(subject, now=now, actor="page")
    return Redirect(HOME, f"The token {subject.name} is deleted. Requests with it are refused from now on.")


def _require_password(verified: Credentials | None) -> User:
    user = sign_in.still_valid(verified)
    if user is None:
        raise Invalid({"password": "The password is wrong."})
    return user


def _value(token: Token, value: str, site: Site, now: int, *, is_new: bool) -> View:
    row = shapes.shown(token, now, None)
    return View("token_value.html", {"row": row, "value": value, "root": site.root, "is_new": is_new})


def _rows(listed: Iterable[Token], now: int, activity_log: Log) -> list[ShownToken]:
    """Return the tokens for the page, with the number of requests in 7 days if the activity log is available."""
    found = {token.id: token for token in listed}
    counts: dict[int, int] = {}
    with suppress(Failure):
        counted = activity_log.read(lambda: calls.count_by_token(found, now - COUNTED)).result()
        counts = dict.fromkeys(found, 0) | counted
    return [shapes.shown(token, now, counts.get(token_id)) for token_id, token in found.items()]
