"""Pages with the figures of artists, albums and tracks, their downloads, and reports shared by links."""

from functools import partial

from musicsvc.server.handlers import exports
from musicsvc.server.handlers.pages import insights, reports
from musicsvc.server.routes.pages import OPEN, SESSION, page
from musicsvc.server.routes.route import RateLimit, Route
from musicsvc.server.schemas.pages.insights import ArtistsQuery, ExportForm, PagePeriod, ShareForm
from musicsvc.store.dashboards import report_links
from musicsvc.store.insights.figures import album_of, artist_of, track_of

ARTIST, ALBUM, TRACK = "/insights/artist/{id}", "/insights/album/{id}", "/insights/track/{id}"
figures = partial(page, "GET", handler=insights.show, access=SESSION, query=PagePeriod, figures=True)
share = partial(page, "POST", handler=insights.share, access=SESSION, query=PagePeriod, body=ShareForm)
export = partial(page, "POST", access=SESSION, body=ExportForm, reads=True, slow=True, limit=RateLimit.EXPORTS)

# fmt: off
ROUTES: tuple[Route, ...] = (
    page("GET", "/insights", insights.show_artists, SESSION, query=ArtistsQuery, form="/insights",
         figures=True),
    figures(ARTIST, find=artist_of, form=ARTIST),
    figures(ALBUM, find=album_of, form=ALBUM),
    figures(TRACK, find=track_of, form=TRACK),
    page("GET", f"{TRACK}/realtime", insights.show_realtime, SESSION, find=track_of),
    share(f"{ARTIST}/share", find=artist_of, form=ARTIST),
    share(f"{ALBUM}/share", find=album_of, form=ALBUM),
    share(f"{TRACK}/share", find=track_of, form=TRACK),
    export("/insights/export/csv", exports.export_table("csv")),
    export("/insights/export/json", exports.export_table("json", attachment=True)),
    export("/insights/export/xlsx", exports.export_table("xlsx")),
    export("/insights/export/pdf", exports.export_pdf, render=exports.render_pdf),
    page("GET", "/reports/{link}", reports.show, OPEN, render=reports.draw, figures=True, limit=RateLimit.REPORTS),
    page("POST", "/settings/share-links/{id}/end", reports.end, SESSION, find=report_links.get_own),
)
# fmt: on
