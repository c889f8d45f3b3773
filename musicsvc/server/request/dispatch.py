"""Processes requests: checks in a fixed order, then the handler in one database transaction, then the response."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from aiohttp import hdrs
from aiohttp.web import BaseRequest, StreamResponse

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import Failure, Overloaded, TooMany
from musicsvc.server import call as calls
from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.call import BUSY, Call, Observer
from musicsvc.server.freshness import Freshness
from musicsvc.server.logs.failures import FailureLog, apology
from musicsvc.server.peer import HSTS, PeerResolver, require_https
from musicsvc.server.request import bodies
from musicsvc.server.request.executors import PREPARING, Executors, Work
from musicsvc.server.request.immediate import ImmediateAnswers
from musicsvc.server.request.page_context import wants_page
from musicsvc.server.request.pages import Pages
from musicsvc.server.request.passwords import PasswordVerifier
from musicsvc.server.request.reads import Reads
from musicsvc.server.request.units import build_unit, page_size_name, read_query
from musicsvc.server.responses import errors
from musicsvc.server.responses.answer_cache import AnswerCache, Slot, represent_json
from musicsvc.server.responses.fragments import FragmentReader
from musicsvc.server.responses.large import AnswerBuilder, uncached
from musicsvc.server.responses.memory_budget import AnswerMemory
from musicsvc.server.responses.responses import REQUEST_ID_HEADER, Reply, build_response, is_safe_request_id
from musicsvc.server.routes.paths import INSIGHTS
from musicsvc.server.routes.route import SAFE, Family, Route, Router
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas import fields
from musicsvc.server.schemas.parsed_body import ParsedBody
from musicsvc.server.shapes.envelope import Download
from musicsvc.server.shapes.representation import Representation
from musicsvc.store.engine.store import Store

log = logging.getLogger("musicsvc")
CLIENT_CLOSED = 499  # the recorded status if the client disconnected before the response


class Dispatcher:
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
        self._store = store
        self._reads = Reads(store)
        self._clock = clock
        self._authenticator = authenticator
        self._executors = executors
        self._observers = observers
        self._sources = {"settings": settings, **sources}
        self._router = Router(ROUTES)
        self._peers = PeerResolver(settings)
        self._bodies = bodies.Bodies(settings.server.body_timeout, executors)
        self._passwords = PasswordVerifier(store, authenticator.limiter, executors)
        self._pages = Pages(settings, store, clock, authenticator.limiter, self._bodies, executors, self._result)
        self._failures = FailureLog(clock)
        self._random = random.Random()  # noqa: S311 - request ids are unique and no secrets; saves a system call
        self.answer_memory = AnswerMemory(settings.server.answer_memory)
        self.answer_cache = AnswerCache(settings.server.answer_cache, freshness)
        self.immediate = ImmediateAnswers(
            authenticator, authenticator.limiter, self.answer_cache, clock, self._request_id, self._notify
        )

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Return the response to the request, or an error response if the request fails."""
        request_id = self._request_id(request.headers.get(REQUEST_ID_HEADER))
        calls.request_id.set(request_id)
        call = Call(self._clock.now(), self._clock.monotonic(), request_id, request.method)
        response = None
        try:
            reply = await self._reply_or_refusal(request, call)
            return (response := await build_response(request, reply, request_id))
        finally:
            if call.reservation is not None:
                call.reservation.release()
            self._complete(call, response)
            calls.request_id.set(None)  # the same task may process the connection's next request

    def _request_id(self, given: str | None) -> str:
        """Return the client's request id if it is safe to log, otherwise a new one."""
        if given is not None and is_safe_request_id(given):
            return given
        return f"{self._random.getrandbits(96):024x}"

    async def _reply_or_refusal(self, request: BaseRequest, call: Call) -> Reply:
        try:
            reply = await self._reply(request, request.rel_url.raw_path, call)
        except Failure as failure:
            if isinstance(failure, TooMany):
                call.retry_after = failure.retry_after
            elif isinstance(failure, Overloaded):
                call.refused_by = BUSY
                await self._authenticator.uncount(call)
            reply = await self._refusal(request, self._failures.for_client(failure, call), call)
        except Exception:
            log.exception("unhandled exception in request %s (method %s)", call.request_id, request.method)
            reply = await self._refusal(request, apology(call), call)
        return replace(reply, headers={**call.headers, **reply.headers}) if call.headers else reply

    async def _refusal(self, request: BaseRequest, failure: Failure, call: Call) -> Reply:
        """Return the error response for the failure, as a page if the client wants one."""
        if wants_page(request, call.route):
            peer = self._peers.resolve(_remote_address(request), request.headers, tls=request.secure)
            return await self._pages.error_page(request, failure, peer, call)
        path = request.rel_url.raw_path  # those of the insights API have their own error format
        body = errors.body_of(failure, insights=path == INSIGHTS or path.startswith(f"{INSIGHTS}/"))
        return Reply(body, errors.status_of(failure), headers=errors.headers_of(failure))

    def note_unreadable(self, address: str, request_id: str, status: int, size: int) -> None:
        """Pass a request that was not valid HTTP to the observers. The connection sends the response itself."""
        call = Call(self._clock.now(), self._clock.monotonic(), request_id, "", address)
        call.status, call.size = status, size
        self._notify(call)

    def _complete(self, call: Call, response: StreamResponse | None) -> None:
        """Complete the call and pass it to the observers. `response` is None if the client has disconnected."""
        call.status = CLIENT_CLOSED if response is None else response.status
        call.size = 0 if response is None or call.method == "HEAD" else response.content_length or 0
        call.milliseconds = (self._clock.monotonic() - call.began) * 1000
        self._notify(call)

    def _notify(self, call: Call) -> None:
        for observe in self._observers:
            observe(call)

    async def _reply(self, request: BaseRequest, path: str, call: Call) -> Reply:
        peer = self._peers.resolve(_remote_address(request), request.headers, tls=request.secure)
        call.address = peer.address
        if peer.hsts:
            call.headers |= HSTS
        call.judged = peer.judged
        found = None
        try:
            found = self._router.match(request.method, path)
        finally:
            if not (found and found[0].plain_http):
                require_https(peer)
        route, values = found
        call.route = route
        if route.family is Family.PAGE:
            return await self._pages.reply(request, route, values, peer, call)
        credentials = _credentials(request)
        caller = await self._authenticator.authenticate(route, credentials, call)
        if route.subject is not None:
            call.resource = route.subject.resource(*values.values())
        if route.enabled_if is not None:
            route.enabled_if(self._settings)
        parsed = None
        if route.body is not None:
            late = not request.content.is_eof()
            context = {"hosted": self._settings.hosted, "caller_id": caller and caller.user_id, "now": call.at}
            parsed = await self._bodies.receive(request, route.body, context, token_holder=call.token_holder)
            if late and caller is not None and credentials is not None:
                caller = await self._authenticator.reauthenticate(credentials)
            call.resource = call.resource or parsed.resource
        return await self._answer(request, route, values, parsed, {"caller": caller, "peer": peer}, call)

    async def _answer(
        self,
        request: BaseRequest,
        route: Route,
        values: Mapping[str, str],
        parsed: ParsedBody | None,
        given: dict[str, Any],
        call: Call,
    ) -> Reply:
        """Answer an accepted request from the cache or by its handler. `given`: handler arguments by parameter name."""
        caller = given["caller"]
        caching = route.caching(anonymous=caller is None) if request.method in SAFE else None
        slot = self.answer_cache.find(request.raw_path, route.audience(caller)) if route.cacheable else None
        if isinstance(slot, Representation):
            call.reservation = self.answer_memory.reservation(call.address, call.holder)
            call.reservation.resize(len(slot.content))
            self.immediate.learn(request, call, given["peer"])
            return Reply(slot, 200, caching=caching)
        fragments = None if slot is None else self.answer_cache.fragments.at(slot.stamp)
        result = await self._result(route, values, request, parsed, given, call, slot, fragments)
        if route.constant:
            result = represent_json(result)
            self.immediate.learn(request, call, given["peer"], result)
        status = 200 if request.method == "HEAD" else route.status
        if slot is not None and fragments is not None:
            result = slot.fill(result, fragments.sources)
        return Reply(result, status, caching=caching)

    async def _result(
        self,
        route: Route,
        values: Mapping[str, str],
        request: BaseRequest,
        parsed: ParsedBody | None,
        given: dict[str, Any],
        call: Call,
        slot: Slot | None = None,
        fragments: FragmentReader | None = None,
    ) -> Any:
        """Run the handler and reserve memory for its result. `given`: handler arguments by parameter name."""
        call.reservation = call.reservation or self.answer_memory.reservation(call.address, call.holder)
        name = page_size_name(route, request)
        builder = AnswerBuilder(call.reservation, name, nests_tracks=route.nests_tracks, fragments=fragments)
        result = await self._run(route, values, request, parsed, given | {"answer": builder}, call, slot)
        return builder.finish(result, writes=route.writes, drawn=route.render is not None)

    async def _run(
        self,
        route: Route,
        values: Mapping[str, str],
        request: BaseRequest,
        parsed: ParsedBody | None,
        given: dict[str, Any],
        call: Call,
        slot: Slot | None,
    ) -> Any:
        """Run the handler in a transaction and return its result. `given`: handler arguments by parameter name."""
        now, body = self._clock.now(), parsed and parsed.model
        query, query_errors = read_query(route, request, now)
        sources = {**self._sources, **given, "body": body, "query": query, "now": now}
        run = partial(self._executors.run, token_holder=call.token_holder)
        if route.password is not None and body is not None:
            sources["verified"] = await self._passwords.verify(route, body, given["caller"], call)
        if route.call_prepare is not None and body is not None:
            if route.subject is not None:
                find = partial(route.subject.load, *values.values(), sources=sources)
                await asyncio.wrap_future(self._store.read(find))
            sources["prepared"] = await run(PREPARING[route.limit], partial(route.call_prepare, sources))
        unit = build_unit(route, values, sources, parsed, query_errors)
        unit = unit if slot is None else slot.recording(unit)
        large = route.nests_tracks and isinstance(query, fields.Pages) and query.large and given["caller"] is not None
        if large:
            given["answer"].expect_large()
        result = await self._run_unit(route, unit, call, large=large)
        call.tally = route.tally(result) if route.tally else call.tally
        if route.call_render is None or isinstance(result, Download):
            return result
        draw = partial(route.call_render, sources | {"drawing": result})
        return await run(Work.FIGURES if route.figures else Work.DRAWING, draw, key=getattr(result, "key", None))

    async def _run_unit(self, route: Route, unit: Callable[[], Any], call: Call, *, large: bool) -> Any:
        if route.constant:
            return unit()
        if route.no_store:
            return await asyncio.to_thread(unit)  # the handler may read files, which would block the event loop
        if route.urgent:
            return await asyncio.wrap_future(self._store.write_urgently(unit))
        if route.writes and not route.heavy:
            return await self._store.write_on_loop(unit, counters_only=route.counters_only)
        run = self._store.write if route.writes else self._store.read
        if route.slow:
            kind = Work.EXPORTING
        elif route.figures and route.render is None:
            kind = Work.FIGURES
        elif route.render is not None and not call.token_holder:
            kind = Work.LOOKING_UP  # anybody may request pictures, at any rate
        elif large:
            kind, unit = Work.BUILDING, uncached(unit)
        else:
            return await (self._reads.run(unit) if route.cacheable else asyncio.wrap_future(run(unit)))
        return await self._executors.run(kind, lambda: run(unit).result(), token_holder=call.token_holder)


def _credentials(request: BaseRequest) -> str | None:
    """Return the Authorization header, or None. Several headers are joined, which makes them invalid."""
    lines = request.headers.getall(hdrs.AUTHORIZATION, None)
    return None if lines is None else ",".join(lines)


def _remote_address(request: BaseRequest) -> str:
    """Return the remote address of the connection, or an empty string once the connection is closed."""
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return str(peer[0]) if isinstance(peer, tuple) else ""
