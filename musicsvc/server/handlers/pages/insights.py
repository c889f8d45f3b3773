"""Pages with the figures of artists, albums and tracks, for the accounts that manage them."""

from musicsvc.clock import DAY
from musicsvc.server.schemas.pages.insights import ArtistsQuery, PagePeriod, ShareForm
from musicsvc.server.shapes import dashboards as shapes
from musicsvc.server.shapes import insights, share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.pages import View
from musicsvc.store.dashboards import catalog_search, dashboards, report_links
from musicsvc.store.insights import rankings, realtime
from musicsvc.store.plays import history
from musicsvc.store.plays.subjects import Subject
from musicsvc.store.security.sessions import SessionIdentity


def show_artists(query: ArtistsQuery, caller: SessionIdentity, now: int) -> View:
    """Show the plays of the account's artists or, with `q`, search its artists, albums and tracks."""
    days = history.adapt(query.window(now))
    if query.q:
        found = catalog_search.find(query.q, caller.user_id, days, query.page)
        return View("insights/found.html", {"page": shapes.found(found, query.q, query.page, days, now)})
    ranked = rankings.artists_of_account(caller.user_id, days)
    return View("insights/list.html", {"page": shapes.artists(ranked, days, now)})


def show(subject: Subject, query: PagePeriod, caller: SessionIdentity, now: int) -> View:
    """Show the figures of an artist, album or track."""
    found = dashboards.build(subject, history.adapt(query.window(now)), caller.user_id, now)
    return View("insights/show.html", {"page": shapes.dashboard(found, now)})


def show_realtime(subject: Subject, now: int) -> View:
    """Return HTML with a track's current listeners and latest plays, with which its page updates itself."""
    page = {"realtime": insights.realtime(subject.id, realtime.load(subject, now), now)}
    return View("insights/realtime.html", {"page": page})


def share(subject: Subject, body: ShareForm, query: PagePeriod, caller: SessionIdentity, site: Site, now: int) -> View:
    """Create a link to a report, and show it."""
    lifetime = body.days * DAY
    link = report_links.create(
        subject, history.adapt(query.window(now)), user_id=caller.user_id, lifetime=lifetime, now=now
    )
    return View("insights/shared.html", {"page": share_links.link(link, site)}, status=201)
