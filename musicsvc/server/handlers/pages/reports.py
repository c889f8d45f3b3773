"""Shared reports, for anybody who has the link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.server.shapes import dashboards as shapes
from musicsvc.server.shapes import share_links
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.dashboards import dashboards, report_links

if TYPE_CHECKING:
    from musicsvc.store.models import ReportLink
    from musicsvc.store.security.sessions import SessionIdentity


def show(link: str, now: int) -> View:
    """Show the report of a share link."""
    shared = report_links.open(*share_links.parse(link), now=now)
    report = shapes.report(dashboards.report(shared.subject, shared.window), now)
    return View("insights/report.html", {"page": report | {"expires_at": shared.expires_at, "owner": shared.owner}})


def end(subject: ReportLink, caller: SessionIdentity, now: int) -> Redirect:
    """End a share link."""
    report_links.end(subject, user_id=caller.user_id, now=now)
    return Redirect("/settings#share-links", "The link is ended. Nobody can open the report with it any more.")
