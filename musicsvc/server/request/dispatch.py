"""Processes requests: checks in a fixed order, then the handler in one database transaction, then the response."""

import logging
import random
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, ClassVar, cast

from aiohttp import hdrs
from aiohttp.web import BaseRequest, StreamResponse

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import Failure, Overloaded, TooMany, Unavailable
from musicsvc.server import call as calls
from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.call import BUSY, Call, Observer
from musicsvc.server.freshness import Freshness
from musicsvc.server.logs.throttled_warning import ThrottledWarning
from musicsvc.server.peer import Peer, PeerResolver, require_https
from musicsvc.server.request.bodies import Bodies
from musicsvc.server.request.cross_origin import CrossOrigin
from musicsvc.server.request.exchange import Exchange, Head
from musicsvc.server.request.executors import Executors
from musicsvc.server.request.first_steps import Connection, FirstSteps, note_peer
from musicsvc.server.request.pages import Pages, wants_page
from musicsvc.server.request.running import HandlerRunner
from musicsvc.server.request.uploads import Uploads
from musicsvc.server.responses import errors
from musicsvc.server.responses.answer_cache import AnswerCache, represent_json
from musicsvc.server.responses.responses import (
    REQUEST_ID_HEADER,
    Reply,
    build_response,
    is_safe_request_id,
)
from musicsvc.server.routes.route import INSIGHTS, SAFE, Family, Router
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.engine.store import Store

log = logging.getLogger("musicsvc")
RANDOM_BITS = 36  # of the 96 of a request id, after the time
INTERNAL = 500
REPEAT_SECONDS = 10.0  # between two warnings
CLIENT_CLOSED = 499  # the recorded status if the client disconnected before the response


class Dispatcher:
    routes: ClassVar = ROUTES
    bodies: ClassVar = Bodies
    cross_origin: ClassVar = CrossOrigin

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
    ) -> None:
        """`sources`: objects by parameter name. A handler with a parameter of that name gets the object."""
        self._settings = settings
        self._clock = clock
        self._authenticator = authenticator
        self._observers = observers
        self._router = Router(self.routes, settings.server.base_path)
        self._peers = PeerResolver(settings)
        self._cross_origin = self.cross_origin(settings.server.cors_origins)
        self._bodies = self.bodies(settings.server.body_timeout, executors)
        self._runner = HandlerRunner(settings, store, clock, authenticator.limiter, executors, sources)
        self.answer_cache = AnswerCache(settings.server.answer_cache, freshness)
        uploads = Uploads(store, sources["uploads"], settings.server.body_timeout)
        limiter = authenticator.limiter
        self._pages = Pages(
            settings,
            store,
            clock,
            limiter,
            self._bodies,
            uploads,
            executors,
            self._runner,
            reader=self.answer_cache.reader,
        )
        self._warning = ThrottledWarning(REPEAT_SECONDS, clock.monotonic)  # in an outage every request fails
        self._random = random.Random()  # noqa: S311 - request ids are unique and no secrets; saves a system call
        self.answer_memory = self._runner.memory
        self.first_steps = self._build_first_steps(sources)

    def _build_first_steps(self, sources: Mapping[str, Any]) -> FirstSteps:  # noqa: ARG002 - the demo uses it
        return FirstSteps(self._authenticator, self.answer_cache, self._clock, self._request_id, self._notify)

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Return the response to the request, or an error response if the request fails."""
        exchange = self._exchange(request)
        call = exchange.call
        calls.request_id.set(call.request_id)
        response = None
        try:
            reply = await self._reply_or_refusal(exchange)
            return (response := await self._respond(exchange, reply))
        finally:
            if call.reservation is not None:
                call.reservation.release()
            self._complete(exchange, response)
            calls.request_id.set(None)  # the same task may process the connection's next request

    async def _respond(self, exchange: Exchange, reply: Reply) -> StreamResponse:
        call, request = exchange.call, exchange.request
        try:
            return await build_response(request, reply, call.headers, call.request_id)
        except MemoryError:
            if request.writer.output_size:
                raise
            return await build_response(request, await self._exhausted(exchange), call.headers, call.request_id)

    def _exchange(self, request: BaseRequest) -> Exchange:
        """Return the exchange of the request, which may have taken its first steps."""
        connection = cast("Connection | None", request.protocol)
        if connection is not None and (begun := connection.begun) is not None:
            connection.begun = None
            return self._received(begun, request)
        now = self._clock.now()
        request_id = self._request_id(request.headers.get(REQUEST_ID_HEADER), now)
        return self._received(Exchange(Call(now, self._clock.monotonic(), request_id, request.method)), request)

    def _received(self, exchange: Exchange, request: BaseRequest) -> Exchange:
        exchange.request, exchange.path = request, self._router.local(request.rel_url.raw_path)
        return exchange

    def _request_id(self, given: str | None, now: int) -> str:
        """Return the client's request id if it is safe to log, otherwise a new one.

        New ones ascend, so that the activity log adds them at the end of their index and not to pages all over it.
        """
        if given is not None and is_safe_request_id(given):
            return given
        return f"{now << RANDOM_BITS | self._random.getrandbits(RANDOM_BITS):024x}"

    async def _reply_or_refusal(self, exchange: Exchange) -> Reply:
        call = exchange.call
        try:
            return await self._reply(exchange)
        except Failure as failure:
            if (allowed := self._cross_origin.preflight(exchange.request, call.headers, failure)) is not None:
                return allowed
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
        """Return the response to a request for which memory did not suffice. It counts toward no rate limit."""
        call, failure = exchange.call, Overloaded("There is not enough memory for this. Try again in a second.")
        self._warning.warn("answering requests with 503: memory does not suffice")
        call.refused_by = BUSY
        await self._authenticator.limiter.uncount(call)
        return await self._refusal(exchange, failure)

    def _public(self, failure: Failure, call: Call) -> Failure:
        """Return the failure to send to the client, and log the details that it leaves out."""
        if errors.status_of(failure) == INTERNAL:
            log.error("request %s failed: %s", call.request_id, failure.here)
            return _apology(call)
        if isinstance(failure, Unavailable) and failure.here != failure.message:
            self._warning.warn("answering requests with 503: %s", failure.here)
        return failure

    async def _refusal(self, exchange: Exchange, failure: Failure) -> Reply:
        """Return the error response for the failure, as a page if the client wants one."""
        if wants_page(exchange, exchange.call.route):
            return await self._pages.error_page(exchange, failure, self._peer(exchange.request))
        path = exchange.path  # those of the insights API have their own error format
        body = errors.body_of(failure, insights=path == INSIGHTS or path.startswith(f"{INSIGHTS}/"))
        return Reply(body, errors.status_of(failure), headers=errors.headers_of(failure))

    def note_unreadable(self, address: str, status: int, size: int, headers: dict[str, str]) -> None:
        """Pass a request that was not valid HTTP to the observers. The connection sends the response itself.

        `headers`: those of the response.
        """
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
            observe(call)

    async def _reply(self, exchange: Exchange) -> Reply:
        if exchange.failure is not None:
            raise exchange.failure
        waiting: Awaitable[None] | None = exchange.waiting
        if not hasattr(exchange, "head"):
            head = self._head(exchange)
            if head.route.family is Family.PAGE:
                exchange.head = head
                return await self._pages.reply(exchange)
            waiting = self.first_steps.take(exchange, head)
        if waiting is not None:
            await waiting
        return await self._answer(exchange)

    def _head(self, exchange: Exchange) -> Head:
        """Return the parsed head of a request. Raises Forbidden without HTTPS, NotFound or MethodNotAllowed."""
        request, call = exchange.request, exchange.call
        peer = self._peer(request)
        note_peer(call, peer)
        cross_origin = self._cross_origin.headers(request, exchange.path)
        call.headers |= cross_origin
        found = None
        try:
            found = self._router.match(request.method, exchange.path)
        finally:
            if not (found and found[0].plain_http):
                require_https(peer)
        call.route, values = found
        subject = call.route.subject
        resource = None if subject is None else subject.resource(*values.values())
        return Head(request.raw_path, call.route, values, peer, credentials_of(request), resource, cross_origin)

    def _peer(self, request: BaseRequest) -> Peer:
        return self._peers.resolve(_remote_address(request), request.headers, tls=request.secure)

    async def _answer(self, exchange: Exchange) -> Reply:
        """Answer a request of the API from memory or by its handler."""
        route, call = exchange.head.route, exchange.call
        found = self.first_steps.find(exchange)
        if route.enabled_if is not None:
            route.enabled_if(self._settings)
        caching = route.caching(anonymous=call.caller is None) if call.method in SAFE else None
        if found is not None:
            call.reservation = self._runner.memory.reservation(call.address, call.holder)
            call.reservation.resize(len(found.content))
            self.first_steps.remember(exchange)
            return Reply(found, 200, caching=caching)
        if route.body is not None and exchange.parsed is None:
            await self._receive(exchange)
        slot = exchange.slot
        fragments = None if slot is None else self.answer_cache.fragments.at(slot.stamp)
        result = await self._runner.run(exchange, fragments)
        if route.constant:
            result = represent_json(result)
            self.first_steps.keep(exchange, result)
            self.first_steps.remember(exchange)
        elif slot is not None and fragments is not None:
            result = slot.fill(result, fragments.sources)
        return Reply(result, 200 if call.method == "HEAD" else route.status, caching=caching)

    async def _receive(self, exchange: Exchange) -> None:
        """Receive the body. The token is checked again if the body arrived after the head."""
        route, call, credentials = exchange.head.route, exchange.call, exchange.head.credentials
        assert route.body is not None  # noqa: S101 - checked by the caller
        late = not exchange.request.content.is_eof()
        context = {"hosted": self._settings.hosted, "caller_id": call.caller and call.caller.user_id, "now": call.at}
        parsed = await self._bodies.receive(exchange.request, route.body, context, call)
        call.renew(self._clock.monotonic())
        if late and call.caller is not None and credentials is not None:
            call.caller = await self._authenticator.reauthenticate(credentials, call)
        call.resource = call.resource or parsed.resource
        exchange.parsed = parsed


def _apology(call: Call) -> Failure:
    """Return the error to send to the client after an unexpected exception in the service."""
    return Failure(f"An internal error occurred. Report request {call.request_id} to the operator.")


def credentials_of(request: BaseRequest) -> str | None:
    """Return the Authorization header, or None. Several headers are joined, which makes them invalid."""
    lines = request.headers.getall(hdrs.AUTHORIZATION, None)
    return None if lines is None else ",".join(lines)


def _remote_address(request: BaseRequest) -> str:
    """Return the remote address of the connection, or an empty string once the connection is closed."""
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return str(peer[0]) if isinstance(peer, tuple) else ""
