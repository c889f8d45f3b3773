"""Pages for people with a browser, and the static files that pages use."""

from __future__ import annotations

from typing import Any

from musicsvc.server.handlers.pages import home, sign_in, static
from musicsvc.server.routes.route import Access, Family, PasswordOf, Route
from musicsvc.server.schemas.pages.sign_in import SignInForm, SignInQuery

OPEN, SESSION = Access.OPEN, Access.SESSION


def page(method: str, path: str, handler: Any, access: Access, **more: Any) -> Route:
    """Return the row of a page. `more`: further fields of the row."""
    return Route(method, path, handler, access, family=Family.PAGE, undocumented=True, **more)


# fmt: off
ROUTES: tuple[Route, ...] = (
    page("GET", "/", home.show, OPEN),
    page("GET", "/sign-in", sign_in.show, OPEN, query=SignInQuery),
    page("POST", "/sign-in", sign_in.sign_in, OPEN, body=SignInForm, query=SignInQuery, form="/sign-in",
         password=PasswordOf.NAMED),
    page("POST", "/sign-out", sign_in.sign_out, OPEN),
    Route("GET", "/static/{name}", static.send, OPEN, family=Family.PLAIN, no_store=True, undocumented=True),
)
# fmt: on
