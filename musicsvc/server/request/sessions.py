"""Sessions of browsers: the callers of pages, and what pages they may see."""

import asyncio
from contextlib import suppress
from functools import partial
from urllib.parse import quote, urlsplit

from aiohttp import hdrs

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import Failure, NotFound, Unauthenticated
from musicsvc.server import browsers
from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.browsers import Browser
from musicsvc.server.call import Call, Exchange
from musicsvc.server.routes.route import LISTENS, SAFE, TOOLS, Access, Family
from musicsvc.server.shapes.pages import Redirect
from musicsvc.store.accounts.api_access import NoAccess
from musicsvc.store.engine.store import Store
from musicsvc.store.security import sessions

FOR_PROGRAMS = ("/api/", LISTENS, TOOLS)  # the beginnings of paths
TOUCH_SECONDS = 1.0  # a page does not wait longer to note the last use of its session
NOT_SENT = (
    "You were signed out when the form arrived, so nothing of it was saved."
    " If you sent it twice, the first may have been."
)
FILES = (".csv", ".json", ".svg")  # endings of paths that programs read
WHOLE_PAGE = "HX-Current-URL"  # sent by htmx: the address of the page that asks for a part of itself


class Sessions:
    def __init__(self, settings: Settings, store: Store, clock: Clock, limiter: RateLimiter) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._limiter = limiter
        self._mark = browsers.mark_of(settings.server.base_path)

    async def admit(self, exchange: Exchange) -> None:
        """Find the session, and count the request toward its limits unless the browser must sign in first."""
        browser = exchange.browser = self.open(exchange)
        await self.find(browser, exchange.call)
        if self.sign_in(exchange, browser) is None:
            counting = self._limiter.count(exchange.head.route, exchange.call)
            if counting is not None:
                await counting

    def open(self, exchange: Exchange) -> Browser:
        request, peer = exchange.request, exchange.peer
        origin = f"{'https' if peer.encrypted else 'http'}://{request.headers.get(hdrs.HOST, '')}"
        if self._settings.server.public_url is not None:
            public = urlsplit(self._settings.server.public_url)
            origin = f"{public.scheme}://{public.netloc}"
        value, notice = browsers.read(request.cookies, self._mark, secure=peer.encrypted)
        agent = request.headers.get(hdrs.USER_AGENT, "").encode(errors="replace").decode()
        return Browser(peer.encrypted, origin, peer.address, agent, self._mark, value, notice)

    async def find(self, browser: Browser, call: Call) -> None:
        """Note the session of the browser's cookie, or None. Write its time of last use at most once a minute."""
        browser.caller = call.caller = None
        if (value := browser.value) is None:
            return
        now = self._clock.now()
        within = call.remaining(self._clock.monotonic())
        found = await asyncio.wrap_future(self._store.read(lambda: sessions.find(value, now=now), within=within))
        if found is None:
            return
        browser.caller = call.caller = found
        call.account_id, call.session_id, call.token_holder = found.user_id, found.session_id, True
        if found.is_due(now):
            touch = partial(sessions.touch, found.session_id, now=now)
            with suppress(Failure, TimeoutError):  # reading must be possible while nothing can be written
                async with asyncio.timeout(TOUCH_SECONDS):
                    await asyncio.wrap_future(self._store.write(touch, counters_only=True, within=TOUCH_SECONDS))

    def sign_in(self, exchange: Exchange, browser: Browser) -> Redirect | None:
        """Return the way to sign in and back if the page needs a session that the browser has not.

        Raises NotFound on pages of administrators, NoAccess for accounts without API access on pages that need it,
        Unauthenticated for a client that accepts JSON but not HTML.
        """
        request, route = exchange.request, exchange.head.route
        if route.access is Access.OPEN:
            return None
        if browser.caller is None:
            if not wants_page(exchange):
                raise Unauthenticated
            target = request.headers.get(WHOLE_PAGE, "").removeprefix(browser.origin) or request.rel_url.raw_path_qs
            target = target.removeprefix(self._settings.server.base_path)
            if request.method not in SAFE:
                page = (route.form or "/").format_map(exchange.head.values)
                target = f"{page}?{request.rel_url.raw_query_string}".rstrip("?") if route.form else page
            notice = None if request.method in SAFE else NOT_SENT
            return Redirect(f"/sign-in?next={quote(target, errors='replace')}", notice)
        if route.access is Access.DEVELOPER and not browser.caller.api_access:
            raise NoAccess(self._settings.access.contact_email)
        if route.access is Access.ADMIN and not browser.caller.admin:
            raise NotFound
        return None


def wants_page(exchange: Exchange) -> bool:
    """Return True if errors are answered with a page: on the paths of pages, and for browsers outside the APIs.

    A client that accepts JSON but not HTML gets JSON, and so does one that wants a file and does not name HTML.
    """
    accepted, route = ",".join(exchange.request.headers.getall(hdrs.ACCEPT, ())), exchange.call.route
    if "text/html" in accepted:
        return not exchange.path.startswith(FOR_PROGRAMS)
    shown = route is not None and route.family is Family.PAGE and not exchange.path.endswith(FILES)
    return shown and "application/json" not in accepted
