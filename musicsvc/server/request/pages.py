"""Answers requests for pages (docs/architecture.md, The way of a page)."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

from aiohttp import hdrs
from aiohttp.web import BaseRequest

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import Conflict, Failure, Forbidden, Invalid, NotFound, Overloaded, TooMany, Unauthenticated
from musicsvc.server import visits
from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.call import BUSY, Call, Exchange
from musicsvc.server.pages import html
from musicsvc.server.request.bodies import Bodies
from musicsvc.server.request.executors import Executors, Work
from musicsvc.server.request.running import HandlerRunner
from musicsvc.server.request.uploads import Uploads
from musicsvc.server.responses import errors
from musicsvc.server.responses.drawings import Drawings
from musicsvc.server.responses.fragments import FragmentReader
from musicsvc.server.responses.responses import Reply
from musicsvc.server.routes.route import KEPT, SAFE, Access, Family, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.pages.form import TOKEN_FIELD, Form
from musicsvc.server.schemas.reading import ParsedBody
from musicsvc.server.shapes.envelope import Download, Representation, represent
from musicsvc.server.shapes.pages import FormState, Redirect, SignedIn, SignedOut, View
from musicsvc.server.visits import ExpiredForm, Visit
from musicsvc.store.accounts.api_access import NoAccess
from musicsvc.store.engine.store import Store
from musicsvc.store.security import sessions
from musicsvc.store.security.sessions import SessionIdentity

SIGN_IN = "/sign-in"
HTMX = "HX-Request"  # sent by htmx
PART = ("HX-Request-Type", "partial")  # sent by htmx if it replaces a part of the page
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
ERRORS_CAPACITY = 1024 * 1024  # bytes of error pages that are kept, as refusals must be cheap
# Failures after which the page with the form is shown again.
CORRECTABLE = (Invalid, Conflict, TooMany, Overloaded, ExpiredForm)
PERIOD = ("period", "from", "to")  # names in queries
TITLES = {403: "Not allowed", 404: "Page not found", 405: "Not possible", 429: "Too many requests"}
API = "/api/"
PAGES = {route.path: route for route in ROUTES if route.family is Family.PAGE and route.method == "GET"}
# The navigation; links without a page are left out.
LINKS = (
    (Access.SESSION, "/insights", "Figures"),
    (Access.DEVELOPER, "/import", "Import"),
    (Access.SESSION, "/settings/developers", "Developers"),
    (Access.SESSION, "/settings", "Settings"),
    (Access.ADMIN, "/admin", "Administration"),
)


TOUCH_SECONDS = 1.0  # a page does not wait longer to note the last use of its session


class Pages:
    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        limiter: RateLimiter,
        bodies: Bodies,
        uploads: Uploads,
        executors: Executors,
        runner: HandlerRunner,
        *,
        reader: Callable[[], FragmentReader | None],
    ) -> None:
        """`reader`: returns what handlers with a parameter `kept` get. It is called on arrival of the request."""
        self._settings = settings
        self._store = store
        self._clock = clock
        self._limiter = limiter
        self._bodies = bodies
        self._uploads = uploads
        self._executors = executors
        self._base_path = settings.server.base_path
        self._mark = visits.mark_of(self._base_path)
        self._errors = Drawings(ERRORS_CAPACITY, html.HTML_TYPE)
        self._runner = runner
        self._reader = reader

    async def admit(self, exchange: Exchange) -> None:
        """Find the session, and count the request toward its limits unless the browser must sign in first."""
        call, route = exchange.call, exchange.head.route
        call.visit = visit = self._open(exchange)
        await self._find_session(visit, call)
        if not self._must_sign_in(exchange, visit) and (counting := self._limiter.count(route, call)) is not None:
            await counting

    async def answer(self, exchange: Exchange) -> Reply:
        call, route, visit = exchange.call, exchange.head.route, exchange.call.visit
        assert visit is not None  # noqa: S101 - of an admitted request
        if self._must_sign_in(exchange, visit):
            return self._sign_in(exchange, visit)
        if route.enabled_if is not None:
            route.enabled_if(self._settings)
        exchange.given = {"visit": visit, "form": FormState(), "render_page": self._render_for_anybody}
        if route.keeps:
            exchange.given[KEPT] = self._reader()
        try:
            return await self._answer(exchange, visit)
        except NotFound:
            await self._limiter.count_unknown(route, call)
            raise

    async def _answer(self, exchange: Exchange, visit: Visit) -> Reply:
        """Answer an accepted request."""
        request, route = exchange.request, exchange.head.route
        if request.method in SAFE:
            try:
                result = await self._runner.run(exchange)
            except Invalid as failure:
                if route.form is None or not wants_page(exchange, route):
                    raise
                return await self._show_again(exchange, visit, route, dict(request.query), failure)
            return await self._finish(exchange, visit, result, route.status)
        late = not request.content.is_eof()
        async with AsyncExitStack() as stack:
            parsed = exchange.parsed = await self._read_form(exchange, visit, stack)
            exchange.call.renew(self._clock.monotonic())
            if late:
                await self._find_session(visit, exchange.call)
                if self._must_sign_in(exchange, visit):
                    return self._sign_in(exchange, visit)
            try:
                visit.require_own_form(parsed.sent.pop(TOKEN_FIELD, None))
                result = await self._runner.run(exchange)
            except CORRECTABLE as failure:
                if route.form is None or not wants_page(exchange, route):
                    raise
                return await self._show_again(exchange, visit, PAGES[route.form], parsed.sent, failure)
        return await self._finish(exchange, visit, result, route.status)

    def _open(self, exchange: Exchange) -> Visit:
        request, peer = exchange.request, exchange.peer
        origin = f"{'https' if peer.encrypted else 'http'}://{request.headers.get(hdrs.HOST, '')}"
        if self._settings.server.public_url is not None:
            public = urlsplit(self._settings.server.public_url)
            origin = f"{public.scheme}://{public.netloc}"
        value, notice = visits.read(request.cookies, self._mark, secure=peer.encrypted)
        agent = request.headers.get(hdrs.USER_AGENT, "").encode(errors="replace").decode()
        return Visit(peer.encrypted, origin, peer.address, agent, self._mark, value, notice)

    async def _find_session(self, visit: Visit, call: Call) -> None:
        """Note the session of the browser's cookie, or None. Write its time of last use at most once a minute."""
        visit.caller = call.caller = None
        if (value := visit.value) is None:
            return
        now = self._clock.now()
        within = call.remaining(self._clock.monotonic())
        found = await asyncio.wrap_future(self._store.read(lambda: sessions.find(value, now=now), within=within))
        if found is None:
            return
        visit.caller = call.caller = found
        call.account_id, call.session_id, call.token_holder = found.user_id, found.session_id, True
        if found.is_due(now):
            with suppress(Failure):  # reading must be possible while nothing can be written
                touch = partial(sessions.touch, found.session_id, now=now)
                await asyncio.wrap_future(self._store.write(touch, counters_only=True, within=TOUCH_SECONDS))

    async def _read_form(self, exchange: Exchange, visit: Visit, stack: AsyncExitStack) -> ParsedBody:
        """Read and validate the form that the request contains. Raises Forbidden if it was sent from another site.

        `stack`: its end deletes a file of the form that nothing needs.
        """
        request = exchange.request
        visit.require_own_site(request.headers)
        user_id = visit.caller and visit.caller.user_id
        context = {"hosted": self._settings.hosted, "caller_id": user_id, "now": self._clock.now()}
        schema = exchange.head.route.body or Form
        if exchange.head.route.upload and user_id is not None:
            receiving = self._uploads.received(request, schema, context, visit, user_id)
            parsed, exchange.given["received"] = await stack.enter_async_context(receiving)
            return parsed
        return await self._bodies.receive(exchange, schema, context)

    async def _show_again(
        self, exchange: Exchange, visit: Visit, page: Route, sent: Mapping[str, Any], failure: Failure
    ) -> Reply:
        """Show the page of the form again, with the typed values (`sent`) and the error messages."""
        request, call = exchange.request, exchange.call
        if isinstance(failure, TooMany):
            call.retry_after = failure.retry_after
        if isinstance(failure, Overloaded):
            call.refused_by = BUSY
            await self._limiter.uncount(call, failure)
        typed = {name: value for name, value in sent.items() if "password" not in name}
        faults = failure.errors if isinstance(failure, Invalid) else {}
        form = FormState(exchange.path, typed, faults, None if faults else failure.message)
        if request.method in SAFE:  # the page of another period, since the chosen one is not possible
            kept = {name: value for name, value in typed.items() if name not in {*faults, *PERIOD}}
            request = request.clone(rel_url=request.rel_url.with_query(kept))
        values = {name: exchange.head.values[name] for name in page.parameters}
        shown = Exchange(call, exchange.peer, given=exchange.given | {"form": form})
        shown.head, shown.request = exchange.head._replace(route=page, values=values), request
        shown.path = exchange.path
        reply = await self._finish(shown, visit, await self._runner.run(shown), errors.status_of(failure))
        reply.headers.update(errors.headers_of(failure))
        return reply

    async def _finish(self, exchange: Exchange, visit: Visit, result: Any, status: int) -> Reply:
        """Return the page, the redirect or the file that the handler has returned."""
        request, call = exchange.request, exchange.call
        if isinstance(result, Redirect):
            return self._redirect(request, result, visit)
        if not isinstance(result, View):
            if isinstance(result, Download):
                _reserve(call, len(result.content))
            return Reply(result, status, dict(HEADERS), cookies=visit.cookies)
        part = request.headers.get(PART[0]) == PART[1]
        context = _context(exchange, visit) | {
            "form": exchange.given["form"],
            "notice": None if part else visit.take_notice(),
        }
        rendered = await self._in_line(lambda: self._render(result, context, part=part), call)
        _reserve(call, len(rendered.content))
        return Reply(rendered, max(status, result.status), dict(HEADERS), cookies=visit.cookies)

    async def error_page(self, exchange: Exchange, failure: Failure) -> Reply:
        """Return an error response as a page, with the navigation of a signed-in account if there is capacity."""
        request, call, status = exchange.request, exchange.call, errors.status_of(failure)
        visit = call.visit or await self._visit(exchange, failure)
        faults = failure.errors if isinstance(failure, Invalid) else {}
        title = TITLES.get(status, "Something is wrong")
        back = exchange.path if faults and request.method in SAFE else None  # the same page without its wrong query
        values = {"title": title, "message": failure.message, "errors": faults, "back": back}
        view = View("error.html", values | {"ask": isinstance(failure, NoAccess)})
        key = title, failure.message, tuple(faults.items()), back
        rendered = None if visit.caller else self._errors.get(key)
        try:
            if visit.caller is not None:
                context = _context(exchange, visit) | {"notice": None}
                rendered = await self._in_line(lambda: self._render(view, context), call)
            elif rendered is None:
                draw = partial(self._errors.draw, key, partial(self._render_for_anybody, view))
                rendered = await self._in_line(draw, call)
        except (Overloaded, MemoryError):
            rendered = _represent(html.plain(title, failure.message))
        whole = {"HX-Retarget": "body"} if HTMX in request.headers else {}
        return Reply(rendered, status, {**HEADERS, **errors.headers_of(failure), **whole})

    async def _visit(self, exchange: Exchange, failure: Failure) -> Visit:
        """Return the visit of a request that no page answered. Without HTTPS, its session is not looked up."""
        visit = self._open(exchange)
        if not isinstance(failure, Forbidden):
            with suppress(Failure):
                await self._find_session(visit, exchange.call)
        return visit

    def _render(self, view: View, context: Mapping[str, Any], *, part: bool = False) -> Representation:
        return _represent(html.render(view, context, self._base_path, part=part))

    async def _in_line(self, render: Callable[[], Representation], call: Call) -> Representation:
        """Render a page on the thread for pages of such clients. Raises Overloaded if too many wait for it."""
        rendered: Representation = await self._executors.run(Work.RENDERING, render, call)
        return rendered

    def _must_sign_in(self, exchange: Exchange, visit: Visit) -> bool:
        """Return whether the page needs a session that the browser has not. Raises NotFound on administrators' pages.

        Raises NoAccess for accounts without API access on pages that need it, Unauthenticated for a client that accepts
        JSON but not HTML.
        """
        route = exchange.head.route
        if route.access is Access.OPEN:
            return False
        if visit.caller is None:
            if not wants_page(exchange, route):
                raise Unauthenticated
            return True
        if route.access is Access.DEVELOPER and not visit.caller.api_access:
            raise NoAccess(self._settings.access.contact_email)
        if route.access is Access.ADMIN and not visit.caller.admin:
            raise NotFound("There is nothing at this path.")
        return False

    def _sign_in(self, exchange: Exchange, visit: Visit) -> Reply:
        """Lead the browser to the page to sign in, and back afterwards."""
        request, route = exchange.request, exchange.head.route
        target = request.rel_url.raw_path_qs.removeprefix(self._base_path)
        wanted = target if request.method in SAFE else (route.form or "/").format_map(exchange.head.values)
        return self._redirect(request, Redirect(f"{SIGN_IN}?next={quote(wanted)}"), visit)

    def _redirect(self, request: BaseRequest, redirect: Redirect, visit: Visit) -> Reply:
        if isinstance(redirect, SignedIn):
            visit.keep(redirect.session)
        elif isinstance(redirect, SignedOut):
            visit.keep(None)
        if redirect.notice is not None:
            visit.leave_notice(redirect.notice)
        location = self._base_path + redirect.path
        if HTMX in request.headers:  # otherwise htmx would put the other page into a part of this one
            return Reply(_represent(b""), 200, {**HEADERS, "HX-Redirect": location}, cookies=visit.cookies)
        return Reply(_represent(b""), 303, {**HEADERS, "Location": location}, cookies=visit.cookies)

    def _render_for_anybody(self, view: View) -> bytes:
        """Render a page as everybody sees it, without the navigation of an account."""
        context = {"caller": None, "links": (), "notice": None, "pages": PAGES, "path": ""}
        return html.render(view, context, self._base_path)


def _reserve(call: Call, size: int) -> None:
    """Reserve memory for a page until it is sent. Raises Overloaded if too little is free."""
    if call.reservation is not None:
        call.reservation.resize(size)


def _represent(content: bytes) -> Representation:
    return represent(content, html.HTML_TYPE)


def _context(exchange: Exchange, visit: Visit) -> dict[str, Any]:
    """Return the variables of all templates, except `form` and `notice`."""
    return {
        "caller": visit.caller,
        "form_token": lambda: html.hidden_field(TOKEN_FIELD, visit.form_token()),
        "links": _links(visit.caller),
        "pages": PAGES,
        "path": exchange.path,
    }


def wants_page(exchange: Exchange, route: Route | None) -> bool:
    """Return True if errors are answered with a page: on the paths of pages, and for browsers outside the API.

    A client that accepts JSON but not HTML gets JSON. `route`: the endpoint, or None if it is unknown.
    """
    accepted = ",".join(exchange.request.headers.getall(hdrs.ACCEPT, ()))
    if "text/html" in accepted:
        return not exchange.path.startswith(API)
    return route is not None and route.family is Family.PAGE and "application/json" not in accepted


def _links(caller: SessionIdentity | None) -> list[tuple[str, str]]:
    """Return path and text of the links that this caller may follow."""
    allowed = {
        Access.SESSION: caller is not None,
        Access.DEVELOPER: caller is not None and caller.api_access,
        Access.ADMIN: caller is not None and caller.admin,
    }
    return [(path, text) for access, path, text in LINKS if allowed[access] and path in PAGES]
