"""Artists of all accounts, and the account that manages each."""

from musicsvc.errors import Invalid
from musicsvc.server.schemas.pages.admin import ArtistsQuery, AssignForm
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.accounts import users
from musicsvc.store.catalog import artists
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.editing import assignments
from musicsvc.store.engine.pagination import Listing, Page
from musicsvc.store.security.security_events import Administrator
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import isolated


def search(query: ArtistsQuery) -> View:
    """Show artists with their managers."""
    found = _find(query)
    managers = {row.manager_id for row in found.rows if row.manager_id is not None}
    values = {"found": found, "query": query, "emails": users.emails(managers | {query.manager or 0})}
    return View("admin/artists.html", values, part="results")


def _find(query: ArtistsQuery) -> Listing[ArtistRow]:
    page = Page(query.page, pages.SHOWN)
    if query.manager is not None:
        return artists.list_managed(query.manager, page)
    return artists.find_named(query.q, page) if query.q else artists.list_all(page)


def show(subject: ArtistRow) -> View:
    """Show an artist, with the form to assign it to another account."""
    manager = None if subject.manager_id is None else users.get(subject.manager_id)
    return View("admin/artist.html", {"artist": subject, "manager": manager})


def assign(subject: ArtistRow, body: AssignForm, caller: SessionIdentity, now: int) -> Redirect:
    """Assign an artist to another account. Raises Invalid if another administrator has done so meanwhile."""
    manager, former = users.by_email(body.email), assignments.lock(subject.id).manager_id
    if body.was not in {None, former or 0} and former != manager.id:
        now_is = "nobody" if former is None else users.get(former).email
        raise Invalid({"email": f"Somebody else has made {now_is} the manager. Assign again to replace that."})
    assignments.assign(subject.id, manager, now=now, actor=Administrator(caller.user_id))
    return Redirect(f"/admin/artists/{subject.id}", f"{isolated(subject.name)} is managed by {manager.email}.")
