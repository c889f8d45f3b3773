"""Delete accounts."""

from musicsvc.errors import Conflict, Invalid
from musicsvc.server.schemas.pages.admin import DeletionForm
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.accounts import users
from musicsvc.store.catalog import artists
from musicsvc.store.engine.pagination import Page
from musicsvc.store.models import User
from musicsvc.store.people import deletion
from musicsvc.store.security.security_events import Administrator
from musicsvc.store.security.sessions import SessionIdentity

NAMED = Page(1, 10)


def show(subject: User) -> View:
    """Show what goes with an account, and the form to delete it."""
    managed = artists.list_managed(subject.id, NAMED)
    values = {"user": subject, "belongings": deletion.count_belongings(subject)}
    return View("admin/deletion.html", values | {"artists": managed.rows, "total": managed.total})


def delete(subject: User, body: DeletionForm, caller: SessionIdentity, now: int) -> Redirect:
    """Delete an account; another one manages its artists from then on."""
    if subject.id == caller.user_id:
        raise Conflict("This is your own account. Delete it in the settings.")
    manager = None if body.artists_to is None else users.by_email(body.artists_to)
    if manager is not None and manager.id == subject.id:
        raise Invalid({"artists_to": "This is the account itself. Name another one."})
    deletion.delete(subject.id, artists_to=manager, now=now, actor=Administrator(caller.user_id))
    return Redirect("/admin/accounts", f"{subject.email} is deleted.")
