"""Renders pages and those of errors, in lines of their own, and sends browsers to other pages."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from aiohttp import hdrs
from aiohttp.web import BaseRequest

from musicsvc.errors import Failure, Forbidden, Invalid, MethodNotAllowed, NotFound, Overloaded
from musicsvc.server.browsers import Browser
from musicsvc.server.call import Call, Exchange
from musicsvc.server.pages import html
from musicsvc.server.request.executors import Executors, Work
from musicsvc.server.request.sessions import Sessions
from musicsvc.server.responses import errors
from musicsvc.server.responses.drawings import Drawings
from musicsvc.server.responses.responses import Reply
from musicsvc.server.routes.route import SAFE, Access, Family
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.pages.accounts import own_path
from musicsvc.server.schemas.pages.form import TOKEN_FIELD
from musicsvc.server.shapes.envelope import Representation, represent
from musicsvc.server.shapes.pages import Redirect, SignedIn, SignedOut, View
from musicsvc.store.accounts.api_access import NoAccess
from musicsvc.store.security.sessions import SessionIdentity

HTMX = "HX-Request"  # sent by htmx
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
ERRORS_CAPACITY = 1024 * 1024  # bytes of error pages that are kept, as refusals must be cheap
IMPOSSIBLE = dict.fromkeys((405, 409), "Not possible")
TITLES = {403: "Not allowed", 404: "Page not found", 429: "Too many requests", **IMPOSSIBLE}
ONLY_FORM = "This address takes a form, and shows no page."
GONE = "No longer there"  # what a form is about
PAGES = {route.path: route for route in ROUTES if route.family is Family.PAGE and route.method == "GET"}
# The navigation.
LINKS = (
    (Access.SESSION, "/insights", "Insights"),
    (Access.DEVELOPER, "/import", "Import"),
    (Access.SESSION, "/settings/developers", "Developers"),
    (Access.SESSION, "/settings", "Settings"),
    (Access.ADMIN, "/admin", "Administration"),
)


class Renderer:
    def __init__(self, base_path: str, executors: Executors, sessions: Sessions) -> None:
        self._base_path = base_path
        self._executors = executors
        self._sessions = sessions
        self._errors = Drawings(ERRORS_CAPACITY, html.HTML_TYPE)

    async def page(
        self, view: View, exchange: Exchange, browser: Browser, *, part: bool = False, **more: Any
    ) -> Representation:
        """Render a page for its caller. `part`: only the part that the view names; `more`: further variables.

        Raises Overloaded if too many pages of such clients wait. A page with a secret that is shown once waits in no
        line, as a refusal would lose it.
        """
        context = {
            "caller": browser.caller,
            "form_token": lambda: html.hidden_field(TOKEN_FIELD, browser.form_token()),
            "links": _links(browser.caller),
            "pages": PAGES,
            "path": exchange.path,
            **more,
        }

        def render() -> Representation:
            return _represent(html.render(view, context, self._base_path, part=part))

        if view.again is None:
            return await self._in_line(render, exchange.call)
        try:
            return await asyncio.to_thread(render)
        except RuntimeError:  # the system starts no thread
            return render()

    def page_for_anybody(self, view: View) -> bytes:
        """Render a page as everybody sees it, without the navigation of an account."""
        context = {"caller": None, "links": (), "notice": None, "pages": PAGES, "path": ""}
        return html.render(view, context, self._base_path)

    async def error_page(self, exchange: Exchange, failure: Failure) -> Reply:
        """Return an error response as a page, with the navigation of a signed-in account if there is capacity."""
        request, call, status = exchange.request, exchange.call, errors.status_of(failure)
        browser = exchange.browser or await self._browser(exchange, failure)
        faults = failure.errors if isinstance(failure, Invalid) else {}
        gone = isinstance(failure, NotFound) and call.route is not None and request.method not in SAFE
        title = GONE if gone else TITLES.get(status, "Something is wrong")
        without_query = exchange.path if faults and request.method in SAFE else None
        back, message = without_query or self._origin(exchange, browser, failure), failure.message
        # The address of a page that answered a form, opened later.
        if isinstance(failure, MethodNotAllowed) and request.method in SAFE:
            message, parent = ONLY_FORM, exchange.path.rpartition("/")[0]
            back = back or (parent if parent in PAGES else None)
        values = {"title": title, "message": message, "errors": faults, "back": back}
        view = View("error.html", values | {"ask": isinstance(failure, NoAccess)})
        key = title, message, tuple(faults.items()), back
        rendered = None if browser.caller else self._errors.get(key)
        try:
            if browser.caller is not None:
                rendered = await self.page(view, exchange, browser, notice=None)
            elif rendered is None:
                draw = partial(self._errors.draw, key, partial(self.page_for_anybody, view))
                rendered = await self._in_line(draw, call)
        except (Overloaded, MemoryError):
            rendered = _represent(html.plain(title, message))
        whole = {"HX-Retarget": "body"} if HTMX in request.headers else {}
        return Reply(rendered, status, {**HEADERS, **errors.headers_of(failure), **whole})

    def _origin(self, exchange: Exchange, browser: Browser, failure: Failure) -> str | None:
        """Return the path of the page that led here or sent the form, or None if it cannot be shown.

        For those who are signed out it is that of the form, if all have the same, so that few pages are kept.
        """
        request = exchange.request
        sent = None if request.method in SAFE else exchange.call.route
        gone = isinstance(failure, NotFound)
        if gone and (sent is None or browser.caller is None):
            return None
        if browser.caller is None:
            return sent.form if sent is not None and not sent.parameters else None
        path = own_path(request.headers.get(hdrs.REFERER, "").removeprefix(browser.origin + self._base_path))
        shown = sent is not None and not gone and sent.path in PAGES
        return path if path and (shown or urlsplit(path).path != exchange.path) else None

    async def _browser(self, exchange: Exchange, failure: Failure) -> Browser:
        """Return the browser of a request that no page answered. Without HTTPS, its session is not looked up."""
        browser = self._sessions.open(exchange)
        if not isinstance(failure, Forbidden):
            with suppress(Failure):
                await self._sessions.find(browser, exchange.call)
        return browser

    async def _in_line(self, render: Callable[[], Representation], call: Call) -> Representation:
        rendered: Representation = await self._executors.run(Work.RENDERING, render, call)
        return rendered

    def redirect(self, request: BaseRequest, redirect: Redirect, browser: Browser) -> Reply:
        """Lead the browser to another page, where it shows the notice."""
        if isinstance(redirect, SignedIn):
            browser.keep(redirect.session)
        elif isinstance(redirect, SignedOut):
            browser.keep(None)
        if redirect.notice is not None:
            browser.leave_notice(redirect.notice)
        location = self._base_path + redirect.path
        if HTMX in request.headers:  # otherwise htmx would put the other page into a part of this one
            return Reply(_represent(b""), 200, {**HEADERS, "HX-Redirect": location}, cookies=browser.cookies)
        return Reply(_represent(b""), 303, {**HEADERS, "Location": location}, cookies=browser.cookies)


def _represent(content: bytes) -> Representation:
    return represent(content, html.HTML_TYPE)


def _links(caller: SessionIdentity | None) -> list[tuple[str, str]]:
    """Return path and text of the links that this caller may follow."""
    allowed = {
        Access.SESSION: caller is not None,
        Access.DEVELOPER: caller is not None and caller.api_access,
        Access.ADMIN: caller is not None and caller.admin,
    }
    return [(path, text) for access, path, text in LINKS if allowed[access]]
