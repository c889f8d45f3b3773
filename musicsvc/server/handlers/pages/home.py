"""The first page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.server.shapes.pages import View

if TYPE_CHECKING:
    from musicsvc.config import Settings
    from musicsvc.server.shapes.envelope import Site


def show(settings: Settings, site: Site) -> View:
    """Show what this service is, and where to go."""
    return View("home.html", {"registration": settings.registration.open, "root": site.root})
