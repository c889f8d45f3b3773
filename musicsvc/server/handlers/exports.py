"""Export plays, listeners, likes and reposts of what the caller manages, as files or as a report."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from musicsvc.reports.formats import FORMATS
from musicsvc.server.responses.drawer import Drawer
from musicsvc.server.schemas.exports import ExportIn, ReportIn, ScopeIn
from musicsvc.server.shapes import exports as shapes
from musicsvc.server.shapes.envelope import JSON, Download, as_file, success
from musicsvc.server.shapes.spooled import Spooled, spool
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.insights import export_rows, overview
from musicsvc.store.plays import history


class PendingReport(NamedTuple):
    """A report that is not drawn as PDF yet."""

    name: str  # of the PDF file
    content: JSON


def list_formats() -> JSON:
    """List the file formats of exports."""
    return {"success": True, "formats": shapes.formats()}


def export_table(format_id: str, *, attachment: bool = False) -> Callable[[ExportIn, Identity, int, Path], Spooled]:
    """Return a handler that exports tables in this file format. Raises ValueError for PDF, which has no tables.

    `attachment`: browsers save the file even if they usually show files in this format.
    """
    form = FORMATS[format_id]
    if form.write_table is None:
        raise ValueError(f"{format_id} cannot be used for tables")
    write = form.write_table

    def handle(body: ExportIn, caller: Identity, now: int, temporary: Path) -> Spooled:
        days = history.adapt(body.window(now))
        scope = body.scope(caller)
        name = shapes.file_name(body.type, scope, days, form.id)
        headers = as_file(name) if attachment or form.attachment else None
        with export_rows.cells(body.type, scope, days) as rows:
            table = shapes.table(body.type, scope, days, now, rows, form)
            return spool(write(replace(table, folder=temporary)), temporary, form.media_type, headers)

    handle.__name__ = f"export_{form.id}"
    handle.__doc__ = f"Export the figures of tracks, albums or artists, or daily plays, as {form.name}."
    return handle


def export_report(body: ReportIn, caller: Identity, now: int) -> JSON:
    """Report on everything that the caller manages, or on one artist, album or track."""
    scope, days = body.scope(caller), history.adapt(body.window(now))
    found = overview.build_for_print(scope, days, now) if body.include_listening else overview.build(scope, days)
    return success(shapes.report(found, now, charts=body.include_charts))


def export_pdf(body: ScopeIn, caller: Identity, now: int, drawer: Drawer) -> PendingReport:
    """Export the report as a PDF document."""
    scope, days = body.scope(caller), history.adapt(body.window(now))
    drawer.wake()
    found = overview.build_for_print(scope, days, now)
    return PendingReport(shapes.file_name("report", scope, days, "pdf"), shapes.printed(found, now))


def render_pdf(drawing: PendingReport, drawer: Drawer) -> Download:
    """Draw the report as PDF, outside the transaction because it is slow."""
    return Download(drawer.draw("report", drawing.content), FORMATS["pdf"].media_type, as_file(drawing.name))
