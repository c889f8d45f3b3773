"""Pages with the figures of artists, albums and tracks, their downloads, and reports shared by links."""

from functools import partial

from musicsvc.server.handlers import exports
from musicsvc.server.handlers.pages import insights, reports
from musicsvc.server.routes.pages import OPEN, SESSION, page
from musicsvc.server.routes.route import RateLimit, Route
from musicsvc.server.schemas.pages.insights import ArtistsQuery, ExportForm, PagePeriod, ShareForm
from musicsvc.store.dashboards import report_links
from musicsvc.store.insights.figures import album_of, artist_of, track_of

KINDS = {"/insights/artist/{id}": artist_of, "/insights/album/{id}": album_of, "/insights/track/{id}": track_of}
export = partial(page, "POST", access=SESSION, body=ExportForm, reads=True, slow=True, limit=RateLimit.EXPORTS)

# fmt: off
ROUTES: tuple[Route, ...] = (
    page("GET", "/insights", insights.show_artists, SESSION, query=ArtistsQuery, form="/insights",
         figures=True),
    *(page("GET", path, insights.show, SESSION, find=find, query=PagePeriod, form=path, figures=True)
      for path, find in KINDS.items()),
    page("GET", "/insights/track/{id}/realtime", insights.show_realtime, SESSION, find=track_of),
    *(page("POST", f"{path}/share", insights.share, SESSION, find=find, query=PagePeriod, body=ShareForm, form=path)
      for path, find in KINDS.items()),
    export("/insights/export/csv", exports.export_table("csv")),
    export("/insights/export/json", exports.export_table("json", attachment=True)),
    export("/insights/export/xlsx", exports.export_table("xlsx")),
    export("/insights/export/pdf", exports.export_pdf, render=exports.render_pdf),
    page("GET", "/reports/{link}", reports.show, OPEN, render=reports.draw, figures=True, limit=RateLimit.REPORTS),
    page("POST", "/settings/share-links/{id}/end", reports.end, SESSION, find=report_links.get_own),
)
# fmt: on
