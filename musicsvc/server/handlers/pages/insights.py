"""Pages with the figures of artists, albums and tracks, for the accounts that manage them."""

from musicsvc.clock import DAY
from musicsvc.errors import Invalid
from musicsvc.server.schemas.pages.insights import CompareQuery, PagePeriod, ShareForm, SubjectQuery
from musicsvc.server.shapes import comparisons as comparison_shapes
from musicsvc.server.shapes import dashboards as shapes
from musicsvc.server.shapes import insights, share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.pages import View
from musicsvc.store.dashboards import catalog_search, comparisons, dashboards, report_links
from musicsvc.store.insights import realtime
from musicsvc.store.plays import history
from musicsvc.store.plays.subjects import KINDS, Subject
from musicsvc.store.security.sessions import SessionIdentity


def show(subject: Subject, query: SubjectQuery, caller: SessionIdentity, now: int) -> View:
    """Show the figures of an artist, album or track."""
    days = history.adapt(query.window(now))
    found = dashboards.build(subject, days, caller.user_id, now, zone=query.zone, interval=query.by)
    return View("insights/show.html", {"page": shapes.dashboard(found, now, query.zone)})


def show_realtime(subject: Subject, now: int) -> View:
    """Return HTML with a track's current listeners and latest plays, with which its page updates itself."""
    page = {"realtime": insights.realtime(subject.id, realtime.load(subject, now), now)}
    return View("insights/realtime.html", {"page": page})


def compare(query: CompareQuery, caller: SessionIdentity, now: int) -> View:
    """Compare artists, albums or tracks, and find further ones to compare with."""
    subjects, days = query.subjects, history.adapt(query.window(now))
    comparisons.check(subjects, user_id=caller.user_id)
    page = comparison_shapes.comparison(query.kind, comparisons.build(subjects, days), days, now)
    kinds = [KINDS[query.kind]]
    results = catalog_search.find(query.q, caller.user_id, days, kinds=kinds).results if query.q else []
    return View("insights/compare.html", {"page": comparison_shapes.choice(page, query.q, results)})


def share(subject: Subject, body: ShareForm, query: PagePeriod, caller: SessionIdentity, site: Site, now: int) -> View:
    """Create a link to a report, and show it."""
    return _share([subject], body, query, caller, site, now)


def share_comparison(body: ShareForm, query: CompareQuery, caller: SessionIdentity, site: Site, now: int) -> View:
    """Create a link to a comparison, and show it."""
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
