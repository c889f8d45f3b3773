"""Pages for people with a browser, their downloads and shared reports, and the static files that pages use."""

from dataclasses import replace
from functools import partial
from typing import Any

from musicsvc.server.handlers import exports
from musicsvc.server.handlers.accounts import hash_password, registration_open
from musicsvc.server.handlers.pages import accounts, developers, home, insights, leaving, overviews, players, settings
from musicsvc.server.handlers.pages import reports as shared_reports
from musicsvc.server.routes.route import (
    NO_STORE,
    SLOW,
    UNDOCUMENTED,
    URGENT,
    Access,
    Cost,
    Family,
    PasswordOf,
    RateLimit,
    Route,
    Runs,
)
from musicsvc.server.schemas.pages.accounts import SignInForm
from musicsvc.server.schemas.pages.insights import ExportForm
from musicsvc.store.accounts import password_links, tokens
from musicsvc.store.dashboards import report_links
from musicsvc.store.editing import offers
from musicsvc.store.editing.edits import find_artist
from musicsvc.store.insights.figures import album_of, artist_of, track_of
from musicsvc.store.listens import pending
from musicsvc.store.security import sessions

OPEN, SESSION = Access.OPEN, Access.SESSION
FIGURES, HASHING = Cost(Runs.FIGURES, replica=True), Cost(prepare=accounts.hash_new_password)
PASSWORD = "/password/{link}"  # noqa: S105 - a path
SETTINGS = "/settings"
COMPARE = "/insights/compare"
DATA, DELETE = "/settings/data", "/settings/delete"
OFFER, HAND_OVER = "/settings/offers/{id}", "/insights/artist/{id}/hand-over"
DEVELOPERS, ACCESS = "/settings/developers", "/settings/access"
TOKEN = f"{DEVELOPERS}/tokens/{{id}}"
PLAYER, LISTENS = f"{DEVELOPERS}/player", "/settings/listens"


def page(method: str, path: str, handler: Any, access: Access, **more: Any) -> Route:
    """Return the route of a page. `more`: further fields of `Route`."""
    return Route(method, path, handler, access, family=Family.PAGE, docs=UNDOCUMENTED, **more)


KINDS = {"/insights/artist/{id}": artist_of, "/insights/album/{id}": album_of, "/insights/track/{id}": track_of}
TABLES = {kind: f"/insights/{kind}" for kind in ("artists", "albums", "tracks")}
EXPORTING = Cost(Runs.SLOW, reads=True, replica=True)
export = partial(page, "POST", access=SESSION, body=ExportForm, limit=RateLimit.EXPORTS, cost=EXPORTING)


# fmt: off
ROUTES: tuple[Route, ...] = (
    page("GET", "/", home.show, OPEN),
    page("GET", "/sign-in", accounts.show_sign_in, OPEN),
    page("POST", "/sign-in", accounts.sign_in, OPEN, body=SignInForm, form="/sign-in", password=PasswordOf.NAMED),
    page("POST", "/sign-out", accounts.sign_out, OPEN, form="/sign-in"),
    page("GET", "/register", accounts.show_registration, OPEN, enabled_if=registration_open),
    page("POST", "/register", accounts.register, OPEN, form="/register",
         limit=RateLimit.REGISTER, enabled_if=registration_open, cost=Cost(prepare=hash_password)),
    page("GET", PASSWORD, accounts.show_password, OPEN, find=password_links.find, limit=RateLimit.PASSWORD_LINKS),
    page("POST", PASSWORD, accounts.set_password, OPEN, form=PASSWORD,
         find=password_links.find, limit=RateLimit.PASSWORD_LINKS, cost=HASHING),
    page("GET", SETTINGS, settings.show, SESSION),
    page("POST", f"{SETTINGS}/name", settings.rename, SESSION, form=SETTINGS),
    page("POST", f"{SETTINGS}/password", settings.change_password, SESSION, form=SETTINGS,
         password=PasswordOf.CALLER, cost=HASHING, keyed=True),
    page("POST", f"{SETTINGS}/sessions/{{id}}/end", settings.end_session, SESSION, find=sessions.get_own),
    page("POST", f"{SETTINGS}/sessions/end-others", settings.end_other_sessions, SESSION),
    page("GET", DATA, settings.show_data, SESSION),
    page("POST", DATA, settings.download, SESSION, form=DATA, password=PasswordOf.CALLER,
         limit=RateLimit.EXPORTS, cost=Cost(Runs.SLOW, reads=True)),
    page("GET", DELETE, leaving.show_deletion, SESSION),
    page("POST", DELETE, leaving.delete, SESSION, form=DELETE, password=PasswordOf.CALLER, cost=SLOW),
    page("POST", f"{DELETE}/hand-over", leaving.offer, SESSION, form=DELETE, keyed=True),
    page("POST", f"{DELETE}/ask", leaving.ask, SESSION, form=DELETE, keyed=True),
    page("GET", HAND_OVER, leaving.show_hand_over, SESSION, find=find_artist),
    page("POST", HAND_OVER, leaving.hand_over, SESSION, find=find_artist, form=HAND_OVER, keyed=True),
    page("GET", OFFER, leaving.show_offer, SESSION, find=offers.get_received),
    page("POST", f"{OFFER}/accept", leaving.accept, Access.DEVELOPER, find=offers.get_received, form=OFFER,
         password=PasswordOf.CALLER, cost=SLOW, keyed=True),
    page("POST", f"{OFFER}/refuse", leaving.refuse, SESSION, find=offers.get_received, keyed=True),
    page("POST", f"{OFFER}/take-back", leaving.take_back, SESSION, find=offers.get_sent, keyed=True),
    page("GET", DEVELOPERS, developers.show, SESSION),
    page("GET", ACCESS, home.show_request, SESSION),
    page("POST", ACCESS, home.request_access, SESSION, form=ACCESS, keyed=True),
    page("POST", f"{SETTINGS}/purpose", home.choose, SESSION, form="/"),
    page("POST", f"{DEVELOPERS}/tokens", developers.create_token, SESSION, form=DEVELOPERS, password=PasswordOf.CALLER,
         keyed=True),
    page("GET", PLAYER, players.show, Access.DEVELOPER),
    page("POST", PLAYER, players.connect, Access.DEVELOPER, form=PLAYER, password=PasswordOf.CALLER, keyed=True),
    page("GET", LISTENS, players.show_listens, SESSION, cost=Cost(Runs.FIGURES)),  # of what managers miss
    page("POST", f"{LISTENS}/{{id}}/name", players.name, SESSION, find=pending.find_own, form=LISTENS, keyed=True),
    page("POST", f"{LISTENS}/{{id}}/dismiss", players.dismiss, SESSION, find=pending.find_own, keyed=True),
    page("POST", f"{LISTENS}/dismiss", players.dismiss_all, SESSION),
    page("GET", TOKEN, developers.show_token, SESSION, find=tokens.get_own),
    page("POST", f"{TOKEN}/regenerate", developers.regenerate_token, SESSION, find=tokens.get_own, form=TOKEN,
         password=PasswordOf.CALLER, keyed=True),
    page("POST", f"{TOKEN}/delete", developers.delete_token, SESSION, find=tokens.get_own, cost=URGENT),
    Route("GET", "/static/{name}", home.send, OPEN, family=Family.PLAIN, cost=NO_STORE, docs=UNDOCUMENTED),
    page("GET", "/insights", overviews.show, SESSION, form="/insights", cost=FIGURES),
    *(page("GET", path, insights.show, SESSION, find=find, form=path,
           cost=Cost(Runs.FIGURES, replica=find is not track_of))  # that of a track shows its plays of this moment
      for path, find in KINDS.items()),
    *(page("GET", path, partial(overviews.show_table, kind), SESSION, form=path, cost=FIGURES)
      for kind, path in TABLES.items()),
    *(page("GET", f"{path}/csv", partial(overviews.download, kind), SESSION, form=path,
           limit=RateLimit.EXPORTS, cost=Cost(Runs.SLOW, replica=True)) for kind, path in TABLES.items()),
    page("GET", COMPARE, insights.compare, SESSION, form=COMPARE, cost=FIGURES),
    page("POST", f"{COMPARE}/share", insights.share_comparison, SESSION, form=COMPARE, keyed=True),
    page("GET", "/insights/track/{id}/realtime", insights.show_realtime, SESSION, find=track_of),
    *(page("POST", f"{path}/share", insights.share, SESSION, find=find, form=path, keyed=True)
      for path, find in KINDS.items()),
    export("/insights/export/csv", exports.export_table("csv")),
    export("/insights/export/json", exports.export_table("json", attachment=True)),
    export("/insights/export/xlsx", exports.export_table("xlsx")),
    export("/insights/export/pdf", exports.export_pdf, cost=replace(EXPORTING, render=exports.render_pdf)),
    page("GET", "/reports/{link}", shared_reports.show, OPEN, limit=RateLimit.REPORTS,
         cost=Cost(Runs.FIGURES, render=shared_reports.draw)),
    page("POST", "/settings/share-links/{id}/end", insights.end_share, SESSION, find=report_links.get_own, keyed=True),
)
# fmt: on
