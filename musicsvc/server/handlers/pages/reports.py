"""Shared reports, for anybody who has the link."""

from collections.abc import Callable
from typing import NamedTuple

from musicsvc.server.responses.drawings import Drawings
from musicsvc.server.shapes import comparisons as comparison_shapes
from musicsvc.server.shapes import dashboards as shapes
from musicsvc.server.shapes import share_links
from musicsvc.server.shapes.envelope import JSON, Download
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.dashboards import comparisons, dashboards, report_links
from musicsvc.store.dashboards.report_links import SharedReport
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import figures
from musicsvc.store.models import ReportLink
from musicsvc.store.security.sessions import SessionIdentity


class PendingReport(NamedTuple):
    """A shared report that is not drawn yet."""

    key: tuple[int, int]  # the link's id and time of creation
    shared: SharedReport


def show(link: str, now: int, drawn_reports: Drawings) -> PendingReport | Download:
    """Show the report of a share link, at most a few seconds old. The link itself is checked each time."""
    key = share_links.parse(link)
    shared = report_links.open(*key, now=now)
    kept = drawn_reports.get(key, now)
    return PendingReport(key, shared) if kept is None else Download.from_representation(kept, {})


def draw(
    drawing: PendingReport, now: int, store: Store, drawn_reports: Drawings, render_page: Callable[[View], bytes]
) -> Download:
    """Compute the figures in a transaction of their own, and draw the report, which is the same for everybody."""
    shared = drawing.shared

    def render() -> bytes:
        template, report = store.read(lambda: _report(shared, now)).result()
        return render_page(View(template, {"page": report | shapes.sharing(shared)}))

    return Download.from_representation(drawn_reports.draw(drawing.key, render, now), {})


def _report(shared: SharedReport, now: int) -> tuple[str, JSON]:
    """Return the template of a shared report, and its figures."""
    if shared.compared:
        found = comparisons.build(shared.subjects, shared.window)
        noun = figures.noun(shared.subjects[0])
        return "insights/comparison.html", comparison_shapes.comparison(noun, found, shared.window, now)
    (subject,) = shared.subjects
    return "insights/report.html", shapes.report(dashboards.report(subject, shared.window), now)


def end(subject: ReportLink, caller: SessionIdentity, now: int) -> Redirect:
    """End a share link."""
    report_links.end(subject, user_id=caller.user_id, now=now)
    return Redirect("/settings#share-links", "The link is ended. Nobody can open the report with it any more.")
