"""Accounts: search, creation, password links, API access, suspension."""

from collections.abc import Sequence

from musicsvc.errors import Invalid
from musicsvc.server.handlers.admin import plays
from musicsvc.server.schemas.pages.admin import AccountForm, AssignForm, EditAccountForm, ReasonForm, SearchQuery
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.accounts import api_access, password_links, tokens, users
from musicsvc.store.accounts.password_links import NewLink
from musicsvc.store.catalog import artists
from musicsvc.store.editing import assignments
from musicsvc.store.engine.pagination import Page
from musicsvc.store.models import Token, User
from musicsvc.store.plays.reported import account_plays
from musicsvc.store.plays.reported.account_plays import Reports
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Administrator
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import quantity

PATH = "/admin/accounts"
EVENTS = 20
FEW = Page(1, 1)  # for the number of artists


def search(query: SearchQuery) -> View:
    """Show accounts, and the form to create one."""
    found = users.list(limit=pages.WANTED, text=query.q, before=query.before)
    shown = pages.newest_by_id(found[::-1], lambda user: user.id)
    return View("admin/accounts.html", {"list": shown, "query": query}, part="results")


def create(body: AccountForm, caller: SessionIdentity, site: Site, now: int) -> View:
    """Create an account, and show a link to set its password."""
    actor = Administrator(caller.user_id)
    user = users.create(body.email, display_name=body.display_name, now=now, actor=actor)
    return _link(user, password_links.create(user, now=now, actor=actor), site, created=True)


def show(subject: User, now: int) -> View:
    """Show an account with its tokens and its last security events."""
    events = security_events.find(security_events.Filter(account_id=subject.id), limit=EVENTS)[::-1]
    actors = users.emails({event.actor_id for event in events if event.actor_id is not None})
    owned = [(token, tokens.state(token, now)) for token in tokens.list(subject, limit=pages.SHOWN)[::-1]]
    values = {"user": subject, "tokens": owned, "events": events, "emails": actors}
    reported = account_plays.count(Reports(subject.id, since=now - plays.RECENT), plays.MOST_COUNTED)
    values |= {"reported": reported, "most": plays.MOST_COUNTED, "artists": artists.list_managed(subject.id, FEW)}
    return View("admin/account.html", values)


def create_link(subject: User, caller: SessionIdentity, site: Site, now: int) -> View:
    """Show a new link to set the account's password."""
    return _link(subject, password_links.create(subject, now=now, actor=Administrator(caller.user_id)), site)


def edit(subject: User, body: EditAccountForm, caller: SessionIdentity, now: int) -> Redirect:
    """Change the e-mail and the display name of an account."""
    actor = Administrator(caller.user_id)
    users.edit(subject, email=body.email, display_name=body.display_name, now=now, actor=actor)
    return _back(subject, f"{subject.email} is changed.")


def suspend(subject: User, body: ReasonForm, caller: SessionIdentity, now: int) -> Redirect:
    """Suspend an account, with a reason."""
    users.suspend(subject, reason=body.reason, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} is suspended.")


def reinstate(subject: User, caller: SessionIdentity, now: int) -> Redirect:
    """End the suspension of an account."""
    users.reinstate(subject, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} is no longer suspended.")


def grant(subject: User, caller: SessionIdentity, now: int) -> View | Redirect:
    """Grant API access to an account, and show its tokens, which work at once."""
    revived = api_access.grant(subject, now=now, actor=Administrator(caller.user_id))
    return granted(subject, revived, f"{PATH}/{subject.id}")


def grant_plays(subject: User, caller: SessionIdentity, now: int) -> View | Redirect:
    """Grant API access with the right to report plays of other listeners."""
    revived = api_access.grant(subject, plays=True, now=now, actor=Administrator(caller.user_id))
    return granted(subject, revived, f"{PATH}/{subject.id}", "API access, and may report plays of other listeners")


def make_admin(subject: User, caller: SessionIdentity, now: int) -> Redirect:
    """Make an account an administrator."""
    users.set_admin(subject, admin=True, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} is an administrator.")


def end_admin(subject: User, caller: SessionIdentity, now: int) -> Redirect:
    """End the right of an administrator."""
    users.set_admin(subject, admin=False, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} is no administrator any more.")


def assign_artists(subject: User, body: AssignForm, caller: SessionIdentity, now: int) -> Redirect:
    """Assign all artists of an account to another one."""
    manager = users.by_email(body.email)
    if manager.id == subject.id:
        raise Invalid({"email": "This is the account itself. Name another one."})
    moved = assignments.assign_all(subject, manager, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{quantity(moved, 'artist')} moved to {manager.email}.")


def granted(user: User, revived: Sequence[Token], path: str, right: str = "API access") -> View | Redirect:
    """Show the tokens that work because access was granted, or lead to the page at `path` if there are none."""
    if not revived:
        return Redirect(path, f"{user.email} has {right}.")
    return View("admin/granted.html", {"user": user, "tokens": revived, "back": path})


def revoke(subject: User, caller: SessionIdentity, now: int) -> Redirect:
    """Revoke an account's API access."""
    api_access.revoke(subject, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} has no API access any more.")


def _link(user: User, link: NewLink, site: Site, *, created: bool = False) -> View:
    values = {"user": user, "url": link.url(site.root), "expires_at": link.expires_at, "created": created}
    return View("admin/password_link.html", values)


def _back(user: User, notice: str) -> Redirect:
    return Redirect(f"{PATH}/{user.id}", notice)
