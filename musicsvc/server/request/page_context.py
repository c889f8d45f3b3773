"""The variables of the templates of pages, and the clients that get pages."""

from typing import Any

from aiohttp import hdrs
from aiohttp.web import BaseRequest

from musicsvc.server.pages import html
from musicsvc.server.routes.route import Access, Family, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.pages.form import TOKEN_FIELD
from musicsvc.server.shapes.pages import View
from musicsvc.server.visits import Visit
from musicsvc.store.security.sessions import SessionIdentity

API = "/api/"
PAGES = {route.path: route for route in ROUTES if route.family is Family.PAGE and route.method == "GET"}
# The navigation; links without a page are left out.
LINKS = (
    (Access.SESSION, "/insights", "Figures"),
    (Access.SESSION, "/settings/developers", "Developers"),
    (Access.SESSION, "/settings", "Settings"),
    (Access.ADMIN, "/admin", "Administration"),
)


def render_for_anybody(view: View) -> bytes:
    """Render a page as everybody sees it, without the navigation of an account."""
    return html.render(view, {"caller": None, "links": (), "notice": None, "pages": PAGES, "path": ""})


def build(request: BaseRequest, visit: Visit) -> dict[str, Any]:
    """Return the variables of all templates, except `form` and `notice`."""
    return {
        "caller": visit.caller,
        "form_token": lambda: html.hidden_field(TOKEN_FIELD, visit.form_token()),
        "links": _links(visit.caller),
        "pages": PAGES,
        "path": request.path,
    }


def wants_page(request: BaseRequest, route: Route | None) -> bool:
    """Return True if errors are answered with a page: on the paths of pages, and for browsers outside the API.

    A client that accepts JSON but not HTML gets JSON. `route`: the endpoint, or None if it is unknown.
    """
    accepted = ",".join(request.headers.getall(hdrs.ACCEPT, ()))
    if "text/html" in accepted:
        return not request.path.startswith(API)
    return route is not None and route.family is Family.PAGE and "application/json" not in accepted


def _links(caller: SessionIdentity | None) -> list[tuple[str, str]]:
    """Return path and text of the links that this caller may follow."""
    allowed = {Access.SESSION: caller is not None, Access.ADMIN: caller is not None and caller.admin}
    return [(path, text) for access, path, text in LINKS if allowed[access] and path in PAGES]
