"""Endpoints that export plays, listeners, likes and reposts as files or as a report."""

from functools import partial

from musicsvc.reports.formats import FORMATS
from musicsvc.server.handlers import exports
from musicsvc.server.routes.route import INSIGHTS, Family, RateLimit, Route
from musicsvc.server.schemas.exports import Export, ExportIn, Formats, Report, ReportIn, ScopeIn
from musicsvc.server.schemas.insights import Found

EXPORT = f"{INSIGHTS}/export"
Exporting = partial(
    Route,
    family=Family.INSIGHTS,
    reads=True,
    slow=True,
    replica=True,
    limit=RateLimit.EXPORTS,
    private=True,
    raises=(404,),
)

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{EXPORT}/formats", exports.list_formats, family=Family.INSIGHTS, constant=True, answer=Formats),
    Exporting("POST", f"{EXPORT}/csv", exports.export_table("csv"), body=ExportIn, media="text/csv"),
    Exporting("POST", f"{EXPORT}/json", exports.export_table("json"), body=ExportIn, answer=Found[Export]),
    Exporting("POST", f"{EXPORT}/xlsx", exports.export_table("xlsx"), body=ExportIn, media=FORMATS["xlsx"].media_type,
              extension=True),
    Exporting("POST", f"{EXPORT}/report", exports.export_report, body=ReportIn, answer=Found[Report]),
    Exporting("POST", f"{EXPORT}/pdf", exports.export_pdf, body=ScopeIn, media="application/pdf",
              render=exports.render_pdf),
)
# fmt: on
