"""Requests for API access, and the decisions on them."""

from musicsvc.server.handlers.admin.accounts import granted
from musicsvc.server.schemas.pages.admin import ReasonForm, RequestsQuery
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.accounts import api_access
from musicsvc.store.models import AccessRequest
from musicsvc.store.security.security_events import Administrator
from musicsvc.store.security.sessions import SessionIdentity

PATH = "/admin"


def show(query: RequestsQuery) -> View:
    """Show requests for API access."""
    pending = query.show == "pending"
    found = api_access.requests(pending=pending, limit=pages.WANTED, before=query.before)
    return View("admin/requests.html", {"list": pages.newest_by_id(found, lambda asked: asked.id), "pending": pending})


def show_one(subject: AccessRequest) -> View:
    """Show a request for API access, with the forms to approve and to deny it."""
    return View("admin/request.html", {"request": subject})


def approve(subject: AccessRequest, caller: SessionIdentity, site: Site, now: int) -> View | Redirect:
    """Approve a request for API access, and show the account's tokens, which work at once."""
    _, user, link, revived = api_access.approve(subject.id, now=now, actor=Administrator(caller.user_id))
    if link is None:
        return granted(user, revived, PATH)
    values = {"user": user, "url": link.url(site.root), "expires_at": link.expires_at, "created": True}
    return View("admin/password_link.html", values)


def deny(subject: AccessRequest, body: ReasonForm, caller: SessionIdentity, now: int) -> Redirect:
    """Deny a request for API access, with a reason."""
    denied = api_access.deny(subject.id, body.reason, now=now, actor=Administrator(caller.user_id))
    return Redirect(PATH, f"The request by {denied.email} is denied.")
