"""Shared reports, which anybody with a link opens: as a page, as a table for programs, as a badge."""

from collections.abc import Callable
from typing import NamedTuple

import orjson

from musicsvc.errors import Invalid, NotFound
from musicsvc.reports import badge
from musicsvc.reports.charts import dates
from musicsvc.reports.formats import FORMATS
from musicsvc.reports.tables import Table, csv
from musicsvc.server.responses.drawings import Drawings
from musicsvc.server.schemas.pages.insights import SharedQuery
from musicsvc.server.shapes import columns, insights, share_links
from musicsvc.server.shapes import dashboards as shapes
from musicsvc.server.shapes.envelope import JSON, JSON_TYPE, Download, Representation, Site
from musicsvc.server.shapes.pages import View
from musicsvc.store.dashboards import comparisons, dashboards, report_links, shared_tables
from musicsvc.store.dashboards.report_links import SharedReport
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import figures
from musicsvc.store.plays.periods import to_date
from musicsvc.wording import quantity

CSV, JSON_FILE, SVG = "csv", "json", "svg"  # endings of links that programs read
TYPES = {CSV: FORMATS["csv"].media_type, JSON_FILE: JSON_TYPE, SVG: "image/svg+xml"}
FOR_PROGRAMS = {"Cache-Control": "private, max-age=60", "X-Robots-Tag": "noindex"}
NO_TABLE = "This link has no table {}. It has {}."
NO_BADGE = "A comparison has no badge. Share one of its parts."


class PendingReport(NamedTuple):
    """A shared report that is not drawn yet."""

    key: tuple[int, int, str, str]  # the link's id and time of creation, its ending, and the table
    shared: SharedReport


def show(link: str, query: SharedQuery, now: int, drawn_reports: Drawings) -> PendingReport | Download:
    """Show the report of a share link, at most a few seconds old. The link itself is checked each time.

    Raises Invalid if the report has no such table, NotFound if the link does not work, or not in this form.
    """
    signed, _, ending = link.rpartition(".")
    ending, signed = (ending, signed) if ending in TYPES else ("", link)
    link_id, created_at = share_links.parse(signed)
    shared = report_links.open(link_id, created_at, now=now, program=bool(ending))
    if ending == SVG and shared.compared:
        raise NotFound(NO_BADGE)
    tables, table = shared_tables.names(shared), query.table if ending in {CSV, JSON_FILE} else shared_tables.DAYS
    if table not in tables:
        raise Invalid({"table": NO_TABLE.format(table, " and ".join(tables))})
    key = link_id, created_at, ending, table
    kept = drawn_reports.get(key, now)
    return PendingReport(key, shared) if kept is None else _download(kept, ending)


def draw(
    drawing: PendingReport,
    now: int,
    store: Store,
    site: Site,
    drawn_reports: Drawings,
    render_page: Callable[[View], bytes],
) -> Download:
    """Compute the figures in a transaction of their own, and draw the report, which is the same for everybody."""
    shared, (_, _, ending, table) = drawing.shared, drawing.key

    def render() -> bytes:
        if ending:
            return _file(ending, shared, table, *store.read(lambda: shared_tables.read(shared, table)).result())
        template, report = store.read(lambda: _report(shared, now)).result()
        return render_page(View(template, {"page": report | shapes.sharing(shared, site)}))

    return _download(drawn_reports.draw(drawing.key, render, now, content_type=TYPES.get(ending, "")), ending)


def _download(drawn: Representation, ending: str) -> Download:
    return Download.from_representation(drawn, FOR_PROGRAMS if ending else {})


def _file(ending: str, shared: SharedReport, table: str, name: str, rows: list[JSON]) -> bytes:
    """Return a table as a file or, of one with plays by day, a badge with their sum."""
    window = shared.window
    if ending == CSV:
        names = rows[0] if rows else shared_tables.COLUMNS[table]
        return b"".join(csv(Table([columns.COLUMNS[each] for each in names], [[*row.values()] for row in rows], {})))
    if ending == JSON_FILE:
        return orjson.dumps({"name": name, "period": insights.period(window), "rows": rows})
    plays = quantity(sum(row["plays"] for row in rows), "play")
    return badge.svg(name, plays, f"{name}: {plays}, {dates.span(to_date(window.first), to_date(window.end - 1))}")


def _report(shared: SharedReport, now: int) -> tuple[str, JSON]:
    """Return the template of a shared report, and its figures."""
    if shared.compared:
        found = comparisons.build(shared.subjects, shared.window)
        noun = figures.noun(shared.subjects[0])
        return "insights/comparison.html", shapes.comparison(noun, found, shared.window, now)
    (subject,) = shared.subjects
    return "insights/report.html", shapes.report(dashboards.report(subject, shared.window), now)
