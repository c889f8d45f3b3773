"""Access tokens of all accounts, their revocation, also by the abuse monitor, and its explanation."""

from collections.abc import Callable

from musicsvc.config import Settings
from musicsvc.errors import NotFound
from musicsvc.server.handlers.admin import callers
from musicsvc.server.schemas.fields import parse_id
from musicsvc.server.schemas.pages.admin import OlderQuery, ReasonForm, SearchQuery
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.abuse import enforcement
from musicsvc.store.abuse.replay import Replay
from musicsvc.store.accounts import tokens
from musicsvc.store.activity.log import Log
from musicsvc.store.models import Token
from musicsvc.store.security.security_events import Administrator
from musicsvc.store.security.sessions import SessionIdentity


def search(query: SearchQuery, activity_log: Log, settings: Settings, now: int) -> View:
    """Show access tokens of all accounts, with the sums of their calls in the last 24 hours."""
    found = tokens.list(limit=pages.WANTED, text=query.q, before=query.before)
    shown = pages.newest_by_id([(token, tokens.state(token, now)) for token in found[::-1]], lambda row: row[0].id)
    sums = callers.of_tokens(activity_log, [token.id for token, _ in shown.rows], settings, now)
    return View("admin/tokens.html", {"list": shown, "query": query, "sums": sums}, part="results")


def show(subject: Token, now: int) -> View:
    """Show a token, with the forms to revoke and to reinstate it."""
    deleted = tokens.is_deleted(subject)
    values = {
        "token": subject,
        "state": tokens.state(subject, now),
        "deleted": deleted,
        "scope": pages.SCOPES[subject.scope],
    }
    return View("admin/token.html", values)


def revoke(subject: Token, body: ReasonForm, caller: SessionIdentity, now: int) -> Redirect:
    """Revoke a token, with a reason."""
    if subject.revoked_at is not None and subject.revoked_reason != body.reason:
        return _back(subject, "was revoked before. The earlier reason stays")
    tokens.revoke(subject.id, body.reason, now=now, actor=Administrator(caller.user_id))
    return _back(subject, "is revoked")


def reinstate(subject: Token, caller: SessionIdentity, now: int) -> Redirect:
    """Undo the revocation of a token."""
    token = tokens.reinstate(subject.id, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"is {tokens.state(token, now)}")


def list_abuse(query: OlderQuery) -> View:
    """Show the tokens that the abuse monitor revoked, and the accounts that it suspended."""
    found = enforcement.newest_actions(limit=pages.WANTED, before=query.before)
    return View("admin/abuse.html", {"list": pages.newest_by_id(found, lambda action: action.id)})


def explain_abuse(id: str, replay_token: Callable[..., Replay | None]) -> View:  # noqa: A002 - the name in the path
    """Show how near a token came to each threshold of the abuse rules, and the responses to its calls.

    Raises NotFound if there is no such token.
    """
    token_id = parse_id(id)
    replay = None if token_id is None else replay_token(token_id, since=0)
    if replay is None:
        raise NotFound("There is no such token.")
    return View("admin/explanation.html", {"replay": replay, "answers": replay.answers.most_common()})


def _back(token: Token, outcome: str) -> Redirect:
    return Redirect(f"/admin/tokens/{token.id}", f"Token {token.id} of {token.user.email} {outcome}.")
