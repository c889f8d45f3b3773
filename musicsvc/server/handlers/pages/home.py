"""The home page, with the first steps of an account and its request for access; files that pages use."""

from typing import NamedTuple

from musicsvc.config import Settings
from musicsvc.errors import NotFound
from musicsvc.server.pages import html
from musicsvc.server.schemas.pages.accounts import AccessForm, PurposeForm
from musicsvc.server.shapes.envelope import Download, Site
from musicsvc.server.shapes.pages import FormState, Redirect, View
from musicsvc.store.accounts import api_access, users
from musicsvc.store.dashboards import first_steps
from musicsvc.store.editing import offers
from musicsvc.store.importing.tasks import queue
from musicsvc.store.security.sessions import SessionIdentity

FOR_EVER = "public, max-age=31536000, immutable"  # the name contains the hash of the content
SENT = "Your request was sent. The decision will be shown here."


class Waiting(NamedTuple):
    """Something that waits for the account, and a link to the page that goes on with it."""

    text: str
    path: str
    link: str


def show(settings: Settings, site: Site, caller: SessionIdentity | None, now: int) -> View:
    """Show the home page: a description of the service or, to an account, its first steps and what waits for it."""
    values = {"registration": settings.registration.open, "root": site.root, "now": now}
    if caller is not None:
        values |= {"found": first_steps.load(caller.user_id), "waiting": _waiting(caller)}
        values |= {"received": offers.received(caller.user_id, now=now), "contact": settings.access.contact_email}
    return View("home.html", values)


def _waiting(caller: SessionIdentity) -> list[Waiting]:
    found = []
    if caller.admin and api_access.requests(pending=True, limit=1):
        found.append(Waiting("Requests for access wait for a decision.", "/admin", "Decide"))
    if caller.admin and offers.asked():
        found.append(Waiting("Somebody wants to leave, and asks what becomes of the artists.", "/admin", "Decide"))
    files = queue.list_own(caller.user_id) if caller.api_access else []
    read = [task for task in files if (task.step, task.state) == ("check", "done")]
    found += [Waiting(f"{task.file} is read, but not imported yet.", f"/import/{task.id}", "Go on") for task in read]
    return found


def choose(body: PurposeForm, caller: SessionIdentity) -> Redirect:
    """Choose what the account is for, which decides about its first steps and the words of pages."""
    users.set_purpose(caller.user_id, body.purpose)
    return Redirect("/")


def show_request(caller: SessionIdentity, form: FormState, now: int) -> View | Redirect:
    """Show the form to request access, unless the account has it or waits for a decision."""
    found = first_steps.load(caller.user_id)
    if found.access in {"granted", "pending"} and form.action is None:
        return Redirect("/")
    return View("access.html", {"found": found, "now": now})


def request_access(body: AccessForm, caller: SessionIdentity, now: int) -> Redirect:
    """Request API access."""
    texts = body.use_case, body.volume, body.organization
    api_access.request_own(caller.user_id, *texts, now=now, actor="page")
    return Redirect("/", SENT)


def send(name: str) -> Download:
    """Send a static file. Raises NotFound if there is none of this name."""
    if name not in html.static_files():
        raise NotFound("There is no such file.")
    return Download.from_representation(html.represent_file(html.static_files()[name]), {"Cache-Control": FOR_EVER})
