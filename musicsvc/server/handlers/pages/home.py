"""The home page, and the style sheets, scripts and icons of pages."""

from musicsvc.config import Settings
from musicsvc.errors import NotFound
from musicsvc.server.pages import html
from musicsvc.server.shapes.envelope import Download, Site
from musicsvc.server.shapes.pages import View
from musicsvc.store.editing import offers
from musicsvc.store.security.sessions import SessionIdentity

FOR_EVER = "public, max-age=31536000, immutable"  # the name contains the hash of the content


def show(settings: Settings, site: Site, caller: SessionIdentity | None, now: int) -> View:
    """Show the home page: a description of the service, and links to its other pages."""
    received = offers.received(caller.user_id, now=now) if caller else ()
    return View("home.html", {"registration": settings.registration.open, "root": site.root, "received": received})


def send(name: str) -> Download:
    """Send a static file. Raises NotFound if there is none of this name."""
    if name not in html.static_files():
        raise NotFound("There is no such file.")
    return Download.from_representation(html.represent_file(html.static_files()[name]), {"Cache-Control": FOR_EVER})
