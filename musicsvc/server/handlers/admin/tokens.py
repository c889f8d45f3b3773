"""Access tokens of all accounts, and their revocation."""

from musicsvc.server.schemas.pages.admin import ReasonForm, SearchQuery
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.accounts import tokens
from musicsvc.store.models import Token
from musicsvc.store.security.security_events import Administrator
from musicsvc.store.security.sessions import SessionIdentity


def search(query: SearchQuery, now: int) -> View:
    """Show access tokens of all accounts."""
    found = tokens.list(limit=pages.WANTED, text=query.q, before=query.before)
    shown = pages.newest_by_id([(token, tokens.state(token, now)) for token in found[::-1]], lambda row: row[0].id)
    return View("admin/tokens.html", {"list": shown, "query": query}, part="results")


def show(subject: Token, now: int) -> View:
    """Show a token, with the forms to revoke and to reinstate it."""
    return View("admin/token.html", {"token": subject, "state": tokens.state(subject, now)})


def revoke(subject: Token, body: ReasonForm, caller: SessionIdentity, now: int) -> Redirect:
    """Revoke a token, with a reason."""
    tokens.revoke(subject.id, body.reason, now=now, actor=Administrator(caller.user_id))
    return _back(subject, "is revoked")


def reinstate(subject: Token, caller: SessionIdentity, now: int) -> Redirect:
    """Undo the revocation of a token."""
    token = tokens.reinstate(subject.id, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"is {tokens.state(token, now)}")


def _back(token: Token, outcome: str) -> Redirect:
    return Redirect(f"/admin/tokens/{token.id}", f"Token {token.id} of {token.user.email} {outcome}.")
