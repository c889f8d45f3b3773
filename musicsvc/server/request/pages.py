"""Answers requests for pages and their forms (docs/architecture.md, The way of a page)."""

from codecs import BOM_UTF8
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

from aiohttp.hdrs import CONTENT_DISPOSITION

from musicsvc.clock import Clock
from musicsvc.errors import Conflict, Failure, InProgress, Invalid, NotFound, Overloaded, TooMany
from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.browsers import Browser, ExpiredForm
from musicsvc.server.call import BUSY, Exchange
from musicsvc.server.request import keys
from musicsvc.server.request.bodies import Bodies
from musicsvc.server.request.rendering import HEADERS, PAGES, Renderer
from musicsvc.server.request.running import HandlerRunner
from musicsvc.server.request.sessions import Sessions, wants_page
from musicsvc.server.request.uploads import Uploads
from musicsvc.server.responses import errors
from musicsvc.server.responses.answer_cache import FragmentReader
from musicsvc.server.responses.responses import CACHE_CONTROL, Reply
from musicsvc.server.routes.route import KEPT, SAFE
from musicsvc.server.schemas.pages.form import TOKEN_FIELD, Form
from musicsvc.server.schemas.reading import ParsedBody
from musicsvc.server.shapes.envelope import Download
from musicsvc.server.shapes.pages import FormState, Redirect, View
from musicsvc.server.shapes.spooled import Spooled

PART = ("HX-Request-Type", "partial")  # sent by htmx if it replaces a part of the page
# Failures after which the page with the form is shown again.
CORRECTABLE = (Invalid, Conflict, TooMany, Overloaded, ExpiredForm)
PERIOD = ("period", "from", "to")  # names in queries
UNDER_WAY = "This form was sent before, and is still being worked on. Look in a minute whether it is done."


@dataclass(frozen=True, slots=True)
class Pages:
    """Answers requests for pages.

    `reader`: returns what handlers with a parameter `kept` get. It is called on arrival of the request.
    """

    clock: Clock
    limiter: RateLimiter
    bodies: Bodies
    uploads: Uploads
    runner: HandlerRunner
    sessions: Sessions
    renderer: Renderer
    reader: Callable[[], FragmentReader | None]

    async def answer(self, exchange: Exchange) -> Reply:
        call, route, browser = exchange.call, exchange.head.route, exchange.browser
        assert browser is not None  # noqa: S101 - set by `Sessions.admit`
        if (redirect := self.sessions.sign_in(exchange, browser)) is not None:
            return self.renderer.redirect(exchange.request, redirect, browser)
        exchange.given = {"browser": browser, "form": FormState(), "render_page": self.renderer.page_for_anybody}
        if route.keeps:
            exchange.given[KEPT] = self.reader()
        try:
            return await self._answer(exchange, browser)
        except NotFound:
            await self.limiter.count_unknown(route, call)
            raise

    async def _answer(self, exchange: Exchange, browser: Browser) -> Reply:
        request, route = exchange.request, exchange.head.route
        late = request.method not in SAFE and not request.content.is_eof()
        async with AsyncExitStack() as stack:
            if request.method not in SAFE:
                exchange.parsed = await self._read_form(exchange, browser, stack)
                exchange.call.renew(self.clock.monotonic())
            if late:
                await self.sessions.find(browser, exchange.call)
                if (redirect := self.sessions.sign_in(exchange, browser)) is not None:
                    return self.renderer.redirect(request, redirect, browser)
            if exchange.parsed is not None and route.keyed:
                keys.note_form(exchange, exchange.parsed.sent)
            try:
                if exchange.parsed is not None:
                    browser.require_own_form(exchange.parsed.sent.pop(TOKEN_FIELD, None))
                result = await self.runner.run(exchange)
            except InProgress as failure:
                return await self._show_again(exchange, browser, InProgress(UNDER_WAY, failure.retry_after))
            except CORRECTABLE as failure:
                return await self._show_again(exchange, browser, failure)
        return await self._finish(exchange, browser, result, route.status)

    async def _read_form(self, exchange: Exchange, browser: Browser, stack: AsyncExitStack) -> ParsedBody:
        """Read and validate the form that the request contains. Raises Forbidden if it was sent from another site.

        `stack`: its end deletes a file of the form that nothing needs.
        """
        request = exchange.request
        browser.require_own_site(request.headers)
        schema = exchange.head.route.body or Form
        if exchange.head.route.upload and browser.caller is not None:
            context = self.bodies.context(exchange)
            receiving = self.uploads.received(request, schema, context, browser, browser.caller.user_id)
            parsed, exchange.given["received"] = await stack.enter_async_context(receiving)
            return parsed
        return await self.bodies.receive(exchange, schema)

    async def _show_again(self, exchange: Exchange, browser: Browser, failure: Failure) -> Reply:
        """Show the page of the form again, with what was typed and the errors. Raises the failure if there is none."""
        request, call, route, parsed = exchange.request, exchange.call, exchange.head.route, exchange.parsed
        if route.form is None or not wants_page(exchange) or (parsed is None and not isinstance(failure, Invalid)):
            raise failure
        page, sent = PAGES[route.form], dict(request.query) if parsed is None else parsed.sent
        if isinstance(failure, TooMany):
            call.retry_after = failure.retry_after
        if isinstance(failure, Overloaded):
            call.refused_by = BUSY
            await self.limiter.uncount(call, failure)
        typed = {name: value for name, value in sent.items() if "password" not in name}
        faults = failure.errors if isinstance(failure, Invalid) else {}
        form = FormState(exchange.path, typed, faults, None if faults else failure.message)
        if parsed is None:  # the page without what is not possible, such as the chosen period
            dropped = {*faults, *PERIOD} if not faults.keys().isdisjoint(PERIOD) else faults
            kept = {name: value for name, value in typed.items() if name not in dropped}
            request = request.clone(rel_url=request.rel_url.with_query(kept))
        values = {name: exchange.head.values[name] for name in page.parameters}
        shown = Exchange(call, exchange.peer)
        shown.browser, shown.given = browser, exchange.given | {"form": form}
        shown.head, shown.request = replace(exchange.head, route=page, values=values), request
        shown.path = page.path.format_map(values)  # the links of the page lead there, not to that of the form
        reply = await self._finish(shown, browser, await self.runner.run(shown), errors.status_of(failure))
        reply.headers.update(errors.headers_of(failure))
        return reply

    async def _finish(self, exchange: Exchange, browser: Browser, result: Any, status: int) -> Reply:
        """Return the page, the redirect or the file that the handler has returned."""
        request, call = exchange.request, exchange.call
        if isinstance(result, Redirect):
            return self.renderer.redirect(request, result, browser)
        if isinstance(result, Download | Spooled):
            result = _for_spreadsheets(result)
        size = len(result.content) if isinstance(result, Download) else 0
        caching = result.headers.get(CACHE_CONTROL) if isinstance(result, Download) else None
        if isinstance(result, View):
            part, form = request.headers.get(PART[0]) == PART[1], exchange.given["form"]
            notice, status = None if part else browser.take_notice(), max(status, result.status)
            result = await self.renderer.page(result, exchange, browser, part=part, form=form, notice=notice)
            size = len(result.content)
        if size and call.reservation is not None:
            call.reservation.resize(size)
        return Reply(result, status, dict(HEADERS), caching, browser.cookies)


def _for_spreadsheets(file: Download | Spooled) -> Download | Spooled:
    """Begin a CSV file to save with a byte order mark, without which Excel does not read it as UTF-8. Others stay."""
    if CONTENT_DISPOSITION not in file.headers or not file.content_type.startswith("text/csv"):
        return file
    if isinstance(file, Spooled):
        return replace(file, begin=BOM_UTF8)
    return replace(file, content=BOM_UTF8 + file.content)
