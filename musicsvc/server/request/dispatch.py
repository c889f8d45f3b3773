"""Processes requests: checks in a fixed order, then the handler in one database transaction, then the response."""

import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from aiohttp import hdrs
from aiohttp.web import BaseRequest, StreamResponse

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import Damaged, Failure, Overloaded, TooMany, Unavailable
from musicsvc.server import request_id as request_ids
from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.call import BUSY, CLIENT_CLOSED, Call, Exchange, Head, Observer
from musicsvc.server.freshness import Freshness
from musicsvc.server.logs.throttled_warning import ThrottledWarning
from musicsvc.server.peer import HSTS, PREFER, VARY, CrossOrigin, Peer, PeerResolver, require_https
from musicsvc.server.request import keys
from musicsvc.server.request.bodies import Bodies
from musicsvc.server.request.executors import Executors
from musicsvc.server.request.first_steps import Connection, FirstSteps
from musicsvc.server.request.pages import Pages
from musicsvc.server.request.parameters import preferences
from musicsvc.server.request.rendering import Renderer
from musicsvc.server.request.running import HandlerRunner
from musicsvc.server.request.sessions import Sessions, wants_page
from musicsvc.server.request.tools import Tools
from musicsvc.server.request.uploads import Uploads
from musicsvc.server.responses import errors
from musicsvc.server.responses.answer_cache import AnswerCache, represent_json
from musicsvc.server.responses.handling import USUAL, Handling
from musicsvc.server.responses.large import Reservation
from musicsvc.server.responses.responses import REQUEST_ID_HEADER, Reply, build_response, is_safe_request_id
from musicsvc.server.routes.route import INSIGHTS, LISTENS, SAFE, V1, Family, Probe, Route, Router
from musicsvc.server.shapes.envelope import Representation
from musicsvc.store.engine.store import Store

log = logging.getLogger("musicsvc")
RANDOM_BITS = 36  # of the 96 of a request id, after the time
INTERNAL = 500
PAGE = Family.PAGE  # Python looks it up slowly
REPEAT_SECONDS = 10.0  # between two warnings


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a request, in their order. Others can be put around them where a server is built.

    - `offer`: take bytes that have just arrived, if they are a head that may be answered from memory. Returns whether
      it does.
    - `note_unreadable`: pass a request that was not valid HTTP to the observers. The connection sends the response
      itself: its address, the status, the size and the headers, which may be changed.
    - `identify`: return the client of the connection.
    - `process`: take all the following, and pass the request to the observers.
    - `admit`: find the caller, and count the request toward its limits. An awaitable does what cannot be done at once.
    - `receive`: receive the body of a request of the API.
    - `answer`: return the content of the response. Raises a `Failure` that becomes an error response, as `admit` does.
    - `respond`: return the response, which is sent already if it is long.
    """

    offer: Callable[[Connection, bytes], bool]
    note_unreadable: Callable[[str, int, int, dict[str, str]], None]
    identify: Callable[[BaseRequest], Peer]
    process: Callable[[Exchange], Awaitable[StreamResponse]]
    admit: Callable[[Exchange], Awaitable[None] | None]
    receive: Callable[[Exchange], Awaitable[None]]
    answer: Callable[[Exchange], Awaitable[Reply]]
    respond: Callable[[Exchange, Reply], Awaitable[StreamResponse]]


class Dispatcher:
    """Takes each request through `stages`."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        authenticator: Authenticator,
        freshness: Freshness,
        executors: Executors,
        observers: Sequence[Observer],
        sources: Mapping[str, Any],
        *,
        routes: Sequence[Route],
        cross_origin: CrossOrigin,
    ) -> None:
        """`sources`: objects by parameter name. A handler with a parameter of that name gets the object."""
        self._settings, self._clock = settings, clock
        self._authenticator = authenticator
        self._observers = observers
        self._router = Router(routes, settings.server.base_path)
        self._peers = PeerResolver(settings)
        self._cross_origin = cross_origin
        self._bodies = Bodies(settings, executors)
        limiter, uploads = authenticator.limiter, Uploads(store, sources["uploads"], settings.server.body_timeout)
        self._runner = HandlerRunner(settings, store, clock, limiter, executors, sources)
        self._constants: dict[str, Representation] = {}  # by path, the responses that are always the same
        self.answer_cache = AnswerCache(settings.server.answer_cache, freshness)
        self._sessions = Sessions(settings, store, clock, limiter)
        self._renderer = Renderer(settings.server.base_path, executors, self._sessions)
        of_pages = self._sessions, self._renderer, self.answer_cache.reader
        pages = Pages(clock, limiter, self._bodies, uploads, self._runner, *of_pages)
        self._warning = ThrottledWarning(REPEAT_SECONDS, clock.monotonic)  # in an outage every request fails
        self._unready = ThrottledWarning()  # probes repeat for as long as the fault lasts
        self._random = random.Random()  # noqa: S311 - request ids are unique and no secrets; saves a system call
        of_tools = self._runner, limiter, self._receive, self._public, self._notify
        tools = Tools(routes, settings.server.cors_origins, sources, clock, *of_tools)
        self._apart: dict[Family, Pages | Tools] = {Family.PAGE: pages, Family.TOOLS: tools}
        self.answer_memory = memory = self._runner.memory
        self.first_steps = FirstSteps(self._admit, self._find, clock, self._request_id, self._notify, memory)
        first = self.first_steps.offer, self._note_unreadable, self._identify, self._process
        self.stages = Stages(*first, self._admit, self._receive, self._answer, self._respond)

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Return the response to the request, or an error response if the request fails."""
        exchange = self._connect(request)
        request_ids.current.set(exchange.call.request_id)
        try:
            return await self.stages.process(exchange)
        finally:
            request_ids.current.set(None)  # the same task may process the connection's next request

    def _connect(self, request: BaseRequest) -> Exchange:
        """Return the exchange of the request, which may have been admitted already."""
        connection = cast("Connection | None", request.protocol)
        if connection is not None and (begun := connection.begun) is not None:
            connection.begun, exchange = None, begun
        else:
            now = self._clock.now()
            request_id = self._request_id(request.headers.get(REQUEST_ID_HEADER), now)
            call = Call(now, self._clock.monotonic(), request_id, request.method)
            exchange = Exchange(call, self.stages.identify(request))
        exchange.request, exchange.path = request, self._router.local(request.rel_url.raw_path)
        return exchange

    def _identify(self, request: BaseRequest) -> Peer:
        return self._peers.resolve(request.remote or "", request.headers, tls=request.secure)

    def _request_id(self, given: str | None, now: int) -> str:
        """Return the client's request id if it is safe to log, otherwise a new one.

        New ones ascend, so that the activity log adds them at the end of their index and not to pages all over it.
        """
        if given is not None and is_safe_request_id(given):
            return given
        return f"{now << RANDOM_BITS | self._random.getrandbits(RANDOM_BITS):024x}"

    async def _process(self, exchange: Exchange) -> StreamResponse:
        response = None
        try:
            reply = await self._reply_or_refusal(exchange)
            return (response := await self.stages.respond(exchange, reply))
        finally:
            if exchange.call.reservation is not None:
                exchange.call.reservation.release()
            self._complete(exchange, response)

    async def _respond(self, exchange: Exchange, reply: Reply) -> StreamResponse:
        call, request = exchange.call, exchange.request
        try:
            return await build_response(request, reply, call.headers, call.request_id)
        except MemoryError:
            if request.writer.output_size:
                raise
            return await build_response(request, await self._exhausted(exchange), call.headers, call.request_id)

    async def _reply_or_refusal(self, exchange: Exchange) -> Reply:
        call = exchange.call
        try:
            return await self._reply(exchange)
        except Failure as failure:
            sent = exchange.request.headers
            allowed = self._cross_origin.preflight(call.method, sent, call.headers, failure)
            if allowed is not None:
                return Reply(Representation(b"", "text/plain", "", compressible=False), 204, allowed)
            if isinstance(failure, TooMany):
                call.retry_after = failure.retry_after
            elif isinstance(failure, Overloaded):
                call.refused_by = BUSY
                await self._authenticator.limiter.uncount(call, failure)
            return await self._refusal(exchange, self._public(failure, call))
        except MemoryError:
            return await self._exhausted(exchange)
        except Exception:
            log.exception("unhandled exception in request %s (method %s)", call.request_id, call.method)
            return await self._refusal(exchange, _apology(call))

    async def _exhausted(self, exchange: Exchange) -> Reply:
        """Return the response to a request for which memory or threads did not suffice. It counts toward no limit."""
        call, failure = exchange.call, Overloaded("There is not enough memory for this. Try again in a second.")
        self._warning.warn("answering requests with 503: out of memory or threads")
        call.refused_by = BUSY
        await self._authenticator.limiter.uncount(call)
        return await self._refusal(exchange, failure)

    def _public(self, failure: Failure, call: Call) -> Failure:
        """Return the failure to send to the client, and log the details that it leaves out."""
        probed = call.route is not None and call.route.cost.probe is Probe.READY
        if probed and isinstance(failure, Damaged):
            failure = Unavailable(here=failure.message)
        if errors.status_of(failure) == INTERNAL:
            log.error("request %s failed: %s", call.request_id, failure.here)
            return _apology(call)
        if probed:
            self._unready.warn("not ready: %s", failure.here)
        elif isinstance(failure, Unavailable) and failure.here != failure.message:
            self._warning.warn("answering requests with 503: %s", failure.here)
        return failure

    async def _refusal(self, exchange: Exchange, failure: Failure) -> Reply:
        """Return the error response for the failure, as a page if the client wants one."""
        if wants_page(exchange):
            return await self._renderer.error_page(exchange, failure)
        path = exchange.path  # those of the insights API have their own error format
        if path.startswith(LISTENS):
            status, body = errors.of_listens(failure)
            return Reply(body, status, headers=errors.headers_of(failure))
        body = errors.body_of(failure, insights=path == INSIGHTS or path.startswith(f"{INSIGHTS}/"))
        if isinstance(failure, Unavailable) and exchange.call.route and exchange.call.route.cost.probe is Probe.READY:
            body = errors.state_of(failure)
        return Reply(body, errors.status_of(failure), headers=errors.headers_of(failure))

    def _note_unreadable(self, address: str, status: int, size: int, headers: dict[str, str]) -> None:
        call = Call(self._clock.now(), self._clock.monotonic(), headers[REQUEST_ID_HEADER], "", address)
        call.status, call.size = status, size
        self._notify(call)

    def _complete(self, exchange: Exchange, response: StreamResponse | None) -> None:
        """Complete the call and pass it to the observers. `response` is None if the client has disconnected."""
        call = exchange.call
        call.status = CLIENT_CLOSED if response is None else response.status
        call.size = 0 if response is None or call.method == "HEAD" else response.content_length or 0
        call.milliseconds = (self._clock.monotonic() - call.began) * 1000
        self._notify(call)

    def _notify(self, call: Call) -> None:
        for observe in self._observers:
            try:
                observe(call)
            except Exception:  # the response is on its way, and other observers go on
                log.exception("unhandled exception while noting request %s", call.request_id)

    async def _reply(self, exchange: Exchange) -> Reply:
        if exchange.failure is not None:
            raise exchange.failure
        waiting: Awaitable[None] | None = exchange.waiting
        if not hasattr(exchange, "head"):
            exchange.head = self._head(exchange)
            waiting = self.stages.admit(exchange)
        if waiting is not None:
            await waiting
        return await self.stages.answer(exchange)

    def _head(self, exchange: Exchange) -> Head:
        """Return the parsed head of a request. Raises Forbidden without HTTPS, NotFound or MethodNotAllowed."""
        request, call = exchange.request, exchange.call
        cross_origin = self._cross_origin.headers(request.headers, exchange.path)
        call.add_headers(cross_origin)
        found = None
        try:
            found = self._router.match(request.method, exchange.path)
        finally:
            if not (found and found[0].plain_http):
                require_https(exchange.peer)
        call.route, values = found
        if call.route.notice:
            call.add_headers(call.route.notice)
        subject = call.route.subject
        resource = None if subject is None else subject.resource(*values.values())
        headers = {**cross_origin, **call.route.notice}
        return Head(request.raw_path, call.route, values, credentials_of(request), resource, headers)

    def _admit(self, exchange: Exchange) -> Awaitable[None] | None:
        route, credentials, call = exchange.head.route, exchange.head.credentials, exchange.call
        if route.family is PAGE:
            return self._sessions.admit(exchange)
        return self._authenticator.authenticate(route, credentials, call)

    def _find(self, exchange: Exchange) -> Representation | None:
        """Return the response if it is in memory. Otherwise note its place in the cache, if it has one."""
        head, route = exchange.head, exchange.head.route
        if exchange.found is not None or exchange.slot is not None:
            return exchange.found
        exchange.call.resource = head.resource
        if head.handling.strict and head.handling.errors():
            return None
        if route.constant:
            exchange.found = self._constants.get(route.path)
        elif route.cacheable:
            found = self.answer_cache.find(head.target, route.audience(exchange.call.caller))
            if isinstance(found, Representation):
                exchange.found = found
            else:
                exchange.slot = found
        return exchange.found

    async def _answer(self, exchange: Exchange) -> Reply:
        """Answer a page, or a request of the API from memory or by its handler."""
        route, call = exchange.head.route, exchange.call
        if route.enabled_if is not None:
            route.enabled_if(self._settings)
        apart = self._apart.get(route.family)
        if apart is not None:
            return await apart.answer(exchange)
        _judge(exchange)
        found = self._find(exchange)
        caching = route.caching(anonymous=call.caller is None) if call.method in SAFE else None
        if found is not None:
            call.reservation = Reservation(self.answer_memory, call.address, call.holder)
            call.reservation.resize(len(found.content))
            self.first_steps.remember(exchange)
            return Reply(found, 200, {**exchange.head.handling.headers()}, caching)
        if route.keyed:
            keys.note(exchange)
        if route.body is not None and exchange.parsed is None:
            await self.stages.receive(exchange)
        result = await self._runner.run(exchange)
        if route.cost.probe is Probe.READY and self._unready.reset():
            log.info("ready again")
        if route.constant:
            result = self._constants[route.path] = represent_json(result)
            self.first_steps.remember(exchange)
        elif exchange.slot is not None:
            result = exchange.slot.fill(result)
        headers = {**exchange.head.handling.headers()}
        return Reply(result, 200 if call.method == "HEAD" else route.status, headers, caching)

    async def _receive(self, exchange: Exchange) -> None:
        """Receive the body. The token is checked again if the body arrived after the head."""
        route, call, credentials = exchange.head.route, exchange.call, exchange.head.credentials
        assert route.body is not None  # noqa: S101 - checked by the caller
        late = not exchange.request.content.is_eof()
        parsed = await self._bodies.receive(exchange, route.body)
        call.renew(self._clock.monotonic())
        if late and call.caller is not None and credentials is not None:
            call.caller = await self._authenticator.reauthenticate(credentials, call, route)
        call.resource = call.resource or parsed.resource
        exchange.parsed, head = parsed, exchange.head
        head.handling = head.handling.with_body(parsed.sent, route.body)


def _apology(call: Call) -> Failure:
    """Return the error to send to the client after an unexpected exception in the service."""
    return Failure(f"An internal error occurred. Report request {call.request_id} to the operator.")


def _judge(exchange: Exchange) -> None:
    """Note how the admitted request wants what is unknown to be handled, and its unknown parameters."""
    head, call = exchange.head, exchange.call
    if head.handling is not USUAL or (handling := _handling(exchange.request, head.route)) is USUAL:
        return
    applied = handling.headers() if handling.strict else {}
    head.headers = {**head.headers, "Vary": f"{head.headers.get('Vary', VARY)}, {PREFER}", **applied}
    head.handling, of_peer = handling, HSTS if exchange.peer.hsts else {}
    call.first = {**of_peer, **head.headers, **call.first, **head.headers}  # in the order of the next, from memory


def _handling(request: BaseRequest, route: Route) -> Handling:
    if not route.path.startswith(f"{V1}/"):
        return USUAL
    lines = request.headers.getall(PREFER, None)
    strict = lines is not None and preferences(lines).get("handling", "").lower() == "strict"
    known = route.query.known_names() if route.query is not None else ()
    unknown = dict.fromkeys(f"query.{name}" for name in request.query if name not in known)
    if route.body is None and request.body_exists and request.content_length != 0:
        unknown["body"] = None
    return Handling(strict, tuple(unknown)) if strict or unknown else USUAL


def credentials_of(request: BaseRequest) -> str | None:
    """Return the Authorization header, or None. Several headers are joined, which makes them invalid."""
    lines = request.headers.getall(hdrs.AUTHORIZATION, None)
    return None if lines is None else ",".join(lines)
