"""Pages with the figures of artists, albums and tracks, for the accounts that manage them; shared reports."""

from collections.abc import Callable
from typing import NamedTuple

from musicsvc.clock import DAY
from musicsvc.errors import Invalid
from musicsvc.server.responses.drawings import Drawings
from musicsvc.server.schemas.pages.insights import CompareQuery, PagePeriod, ShareForm, SubjectQuery
from musicsvc.server.shapes import dashboards as shapes
from musicsvc.server.shapes import first_steps, insights, share_links
from musicsvc.server.shapes.envelope import JSON, Download, Site
from musicsvc.server.shapes.first_steps import Step
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.dashboards import catalog_search, comparisons, dashboards, report_links
from musicsvc.store.dashboards.dashboards import Dashboard
from musicsvc.store.dashboards.report_links import SharedReport
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import figures, realtime
from musicsvc.store.models import ReportLink
from musicsvc.store.plays import history
from musicsvc.store.plays.subjects import ALBUM, KINDS, TRACK, Subject
from musicsvc.store.security.sessions import SessionIdentity


class PendingReport(NamedTuple):
    """A shared report that is not drawn yet."""

    key: tuple[int, int]  # the link's id and time of creation
    shared: SharedReport


def show(subject: Subject, query: SubjectQuery, caller: SessionIdentity, now: int) -> View:
    """Show the figures of an artist, album or track."""
    days = history.adapt(query.window(now))
    found = dashboards.build(subject, days, caller.user_id, now, zone=query.zone, interval=query.by)
    steps = None if found.figures.plays_total else _first_steps(found, caller)
    return View("insights/show.html", {"page": shapes.dashboard(found, now, query.zone), "steps": steps})


def _first_steps(found: Dashboard, caller: SessionIdentity) -> list[Step]:
    path = f"/insights/track/new?album={found.subject.id}" if found.subject.kind == ALBUM else "/import"
    tracks = found.subject.kind == TRACK or bool(found.tracks)
    return first_steps.first_play(caller, tracks=tracks, path=path)


def show_realtime(subject: Subject, now: int) -> View:
    """Return HTML with a track's current listeners and latest plays, with which its page updates itself."""
    page = {"realtime": insights.realtime(subject.id, realtime.load(subject, now), now)}
    return View("insights/realtime.html", {"page": page})


def compare(query: CompareQuery, caller: SessionIdentity, now: int) -> View:
    """Compare artists, albums or tracks, and find or propose further ones to compare with."""
    kind, subjects, days = KINDS[query.kind], query.subjects, history.adapt(query.window(now))
    comparisons.check(subjects, user_id=caller.user_id)
    page = shapes.comparison(query.kind, comparisons.build(subjects, days), days, now)
    if query.q:
        results = catalog_search.find(query.q, caller.user_id, days, kinds=[kind]).results
    elif len(subjects) < comparisons.MOST:
        results = comparisons.propose(kind, subjects, user_id=caller.user_id, window=days)
    else:
        results = []
    return View("insights/compare.html", {"page": shapes.choice(page, query.q, results)})


def share(subject: Subject, body: ShareForm, query: PagePeriod, caller: SessionIdentity, site: Site, now: int) -> View:
    """Create a link to a report, and show it."""
    return _share([subject], body, query, caller, site, now)


def share_comparison(body: ShareForm, query: CompareQuery, caller: SessionIdentity, site: Site, now: int) -> View:
    """Create a link to a comparison, and show it. Raises Invalid if nothing is chosen."""
    subjects = query.subjects
    if not subjects:
        raise Invalid({"ids": "Nothing is chosen."})
    comparisons.check(subjects, user_id=caller.user_id)
    return _share(subjects, body, query, caller, site, now)


def _share(
    subjects: list[Subject], body: ShareForm, query: PagePeriod, caller: SessionIdentity, site: Site, now: int
) -> View:
    lifetime = body.days * DAY
    link = report_links.create(
        subjects, history.adapt(query.window(now)), user_id=caller.user_id, lifetime=lifetime, now=now
    )
    return View("insights/shared.html", {"page": share_links.link(link, site)}, status=201)


def show_shared(link: str, now: int, drawn_reports: Drawings) -> PendingReport | Download:
    """Show the report of a share link, at most a few seconds old. The link itself is checked each time."""
    key = share_links.parse(link)
    shared = report_links.open(*key, now=now)
    kept = drawn_reports.get(key, now)
    return PendingReport(key, shared) if kept is None else Download.from_representation(kept, {})


def draw_shared(
    drawing: PendingReport,
    now: int,
    store: Store,
    site: Site,
    drawn_reports: Drawings,
    render_page: Callable[[View], bytes],
) -> Download:
    """Compute the figures in a transaction of their own, and draw the report, which is the same for everybody."""
    shared = drawing.shared

    def render() -> bytes:
        template, report = store.read(lambda: _report(shared, now)).result()
        return render_page(View(template, {"page": report | shapes.sharing(shared, site)}))

    return Download.from_representation(drawn_reports.draw(drawing.key, render, now), {})


def _report(shared: SharedReport, now: int) -> tuple[str, JSON]:
    """Return the template of a shared report, and its figures."""
    if shared.compared:
        found = comparisons.build(shared.subjects, shared.window)
        noun = figures.noun(shared.subjects[0])
        return "insights/comparison.html", shapes.comparison(noun, found, shared.window, now)
    (subject,) = shared.subjects
    return "insights/report.html", shapes.report(dashboards.report(subject, shared.window), now)


def end_share(subject: ReportLink, caller: SessionIdentity, now: int) -> Redirect:
    """End a share link."""
    report_links.end(subject, user_id=caller.user_id, now=now)
    return Redirect("/settings#share-links", "The link is ended. Nobody can open the report with it any more.")
