"""The home page."""

from musicsvc.config import Settings
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.pages import View


def show(settings: Settings, site: Site) -> View:
    """Show the home page: a description of the service, and links to its other pages."""
    return View("home.html", {"registration": settings.registration.open, "root": site.root})
