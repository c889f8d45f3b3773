"""The overview of everything that an account manages, and the tables of its artists, albums and tracks."""

from pathlib import Path

from musicsvc.reports.formats import FORMATS
from musicsvc.reports.tables import Table, csv
from musicsvc.server.schemas.pages.insights import OverviewQuery, TableQuery
from musicsvc.server.shapes import columns
from musicsvc.server.shapes import dashboards as dashboard_shapes
from musicsvc.server.shapes import exports as export_shapes
from musicsvc.server.shapes import overviews as shapes
from musicsvc.server.shapes.envelope import as_file
from musicsvc.server.shapes.first_steps import first_play
from musicsvc.server.shapes.pages import View
from musicsvc.server.shapes.spooled import Spooled, spool
from musicsvc.store.catalog import artists
from musicsvc.store.dashboards import catalog_search, dashboards, overviews, tables
from musicsvc.store.dashboards.tables import Selection
from musicsvc.store.editing import notices, offers
from musicsvc.store.insights.export_rows import KINDS
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays import history
from musicsvc.store.plays.subjects import ACCOUNT, ARTIST, TRACK, Subject
from musicsvc.store.security.sessions import SessionIdentity


def show(query: OverviewQuery, caller: SessionIdentity, now: int) -> View:
    """Show the overview or, with `q`, search the account's artists, albums and tracks."""
    days = history.adapt(query.window(now))
    if query.q:
        results = catalog_search.find(query.q, caller.user_id, days, query.page)
        return View("insights/found.html", {"page": dashboard_shapes.found(results, query.q, query.page, days, now)})
    told = {"notices": notices.latest(caller.user_id, now=now), "received": offers.received(caller.user_id, now=now)}
    if not artists.manages_any(caller.user_id):
        return View("insights/nothing.html", told | {"steps": first_play(caller, tracks=False)})
    found = overviews.build(dashboards.report(Subject(ACCOUNT, caller.user_id), days, query.by), now)
    played = found.dashboard.figures.plays_total
    steps = None if played else first_play(caller, tracks=bool(Scope(manager=caller.user_id).ids(TRACK)))
    selection = Selection(ARTIST)
    table = tables.page(caller.user_id, selection, days, 1)
    return View(
        "insights/overview.html", told | {"steps": steps, "page": shapes.overview(found, table, selection, now)}
    )


def show_table(type_: str, query: TableQuery, caller: SessionIdentity, now: int) -> View:
    """Show all artists, albums or tracks of the account, sorted or found by name."""
    days, selection = history.adapt(query.window(now)), query.selection(KINDS[type_])
    found = tables.page(caller.user_id, selection, days, query.page)
    page = shapes.table(found, selection, query.page, days, now)
    return View("insights/table.html", {"page": page}, part="table")


def download(type_: str, query: TableQuery, caller: SessionIdentity, now: int, temporary: Path) -> Spooled:
    """Send all rows of a table as a CSV file, in the order of the page."""
    days, selection = history.adapt(query.window(now)), query.selection(KINDS[type_])
    rows = tables.cells(caller.user_id, selection, days)
    scope = Scope(manager=caller.user_id)
    headers = as_file(export_shapes.file_name(type_, scope, days, "csv"))
    return spool(csv(Table(columns.of_type(type_, scope), rows, {})), temporary, FORMATS["csv"].media_type, headers)
