"""Figures of everything that the caller manages, as files and as a report, all of one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from musicsvc.reports import pdf, tables
from musicsvc.server.shapes import exports as shapes
from musicsvc.server.shapes.envelope import JSON, Download, success
from musicsvc.server.shapes.representation import JSON_TYPE
from musicsvc.server.shapes.spooled import Spooled, spool
from musicsvc.store.insights import export_rows, overview
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays.periods import TIMEFRAMES, window

if TYPE_CHECKING:
    from musicsvc.server.schemas.exports import ExportIn, PeriodIn, ReportIn
    from musicsvc.store.accounts.tokens import Identity

TIMEFRAME_OF = {period: timeframe for timeframe, period in TIMEFRAMES.items()}


class Drawing(NamedTuple):
    """A report that is read and not drawn yet; `name` is that of its file."""

    name: str
    content: JSON


def list_formats() -> JSON:
    """List the kinds of file that figures can be exported as."""
    return {"success": True, "formats": shapes.formats()}


def export_csv(body: ExportIn, caller: Identity, now: int) -> Spooled:
    """Export the figures of tracks, albums or artists, or daily plays, as CSV."""
    days = window(body.period, now)
    headers = _attachment(shapes.file_name(body.type, days, "csv"))
    with export_rows.cells(body.type, Scope(caller.user_id), days) as rows:
        return spool(tables.csv(export_rows.COLUMNS[body.type], rows), tables.CSV_TYPE, headers)


def export_json(body: ExportIn, caller: Identity, now: int) -> Spooled:
    """Export the figures of tracks, albums or artists, or daily plays, as JSON."""
    days = window(body.period, now)
    head = shapes.head(body.type, days, now)
    with export_rows.cells(body.type, Scope(caller.user_id), days) as rows:
        return spool(tables.json(head, export_rows.COLUMNS[body.type], rows), JSON_TYPE)


def export_report(body: ReportIn, caller: Identity, now: int) -> JSON:
    """Report on everything that the caller manages."""
    found = overview.build(Scope(caller.user_id), window(body.period, now))
    charts = TIMEFRAME_OF[body.period] if body.include_charts else None
    return success(shapes.report(found, now, charts=charts))


def export_pdf(body: PeriodIn, caller: Identity, now: int) -> Drawing:
    """Export the report as a PDF document."""
    days = window(body.period, now)
    found = overview.build(Scope(caller.user_id), days, albums_and_artists=True)
    return Drawing(shapes.file_name("report", days, "pdf"), shapes.printed(found, now))


def draw(drawing: Drawing) -> Download:
    """The document; heavy, hence not within the unit."""
    return Download(pdf.report(drawing.content), "application/pdf", _attachment(drawing.name))


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
