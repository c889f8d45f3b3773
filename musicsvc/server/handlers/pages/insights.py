"""Pages with the figures of artists, albums and tracks, for the accounts that manage them; shared reports."""

from musicsvc.clock import DAY
from musicsvc.errors import Invalid
from musicsvc.server.schemas.pages.insights import CompareQuery, PagePeriod, ShareForm, SubjectQuery
from musicsvc.server.shapes import dashboards as shapes
from musicsvc.server.shapes import first_steps, insights, share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.first_steps import Step
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.dashboards import catalog_search, comparisons, dashboards, report_links
from musicsvc.store.dashboards.dashboards import Dashboard
from musicsvc.store.insights import realtime
from musicsvc.store.models import ReportLink
from musicsvc.store.plays import history
from musicsvc.store.plays.subjects import ALBUM, KINDS, TRACK, Subject
from musicsvc.store.security.sessions import SessionIdentity


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
    return View("insights/compare.html", {"page": shapes.choice(page, query.q, results), "chosen": len({*query.ids})})


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
    days, lifetime = body.period or history.adapt(query.window(now)), body.days * DAY
    link = report_links.create(
        subjects, days, user_id=caller.user_id, programs=body.programs, lifetime=lifetime, now=now
    )
    again = Redirect("/settings#share-links", "The link was created already. It is in the list of share links.")
    return View("insights/shared.html", {"page": share_links.link(link, site)}, status=201, again=again)


def end_share(subject: ReportLink, caller: SessionIdentity, now: int) -> Redirect:
    """End a share link."""
    report_links.end(subject, user_id=caller.user_id, now=now)
    return Redirect("/settings#share-links", "The link is ended. Nobody can open the report with it any more.")
