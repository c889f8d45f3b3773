"""The way of every request: the checks in the order of docs/api.md, one store call, one answer."""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from musicsvc.errors import Failure, Invalid, NotFound, Overloaded, TooMany
from musicsvc.server.logs.failures import FailureLog, apology
from musicsvc.server.request import bodies, errors, heads
from musicsvc.server.request import context as request_context
from musicsvc.server.request import peer as transport
from musicsvc.server.request.context import BUSY, Call
from musicsvc.server.request.executors import Work
from musicsvc.server.responses.large import Builder, LargeAnswerError, encoded, uncached
from musicsvc.server.responses.memory_budget import AnswerMemory, Reservation
from musicsvc.server.responses.pictures import Pictures
from musicsvc.server.responses.responses import Reply, answer, sane_request_id
from musicsvc.server.routes.paths import INSIGHTS
from musicsvc.server.routes.route import SAFE, Access, Family, Route, Router
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.fields import parse_id
from musicsvc.server.schemas.reading import check_query
from musicsvc.server.shapes.envelope import Download

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aiohttp.web import BaseRequest, StreamResponse

    from musicsvc.clock import Clock
    from musicsvc.config import Settings
    from musicsvc.server.access.authentication import Authenticator
    from musicsvc.server.metrics.registry import Metrics
    from musicsvc.server.request.context import Observer
    from musicsvc.server.request.executors import Executors
    from musicsvc.server.schemas.parsed_body import ParsedBody
    from musicsvc.server.shapes.envelope import Site
    from musicsvc.store.engine.store import Store

log = logging.getLogger("musicsvc")
GONE = 499  # noted where the client went before its answer
ME = "me"  # the caller's own, in a path


class Dispatcher:
    """Answers requests by the table of endpoints."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        site: Site,
        authenticator: Authenticator,
        executors: Executors,
        observers: Sequence[Observer] = (),
        *,
        metrics: Metrics,
    ) -> None:
        """`observers` are told of each call once it is answered; they neither wait nor fail."""
        self._settings = settings
        self._store = store
        self._clock = clock
        self._site = site
        self._authenticator = authenticator
        self._executors = executors
        self._observers = observers
        self._metrics = metrics
        self._router = Router(ROUTES)
        self._transport = transport.Transport(settings)
        self._bodies = bodies.Bodies(settings.server.body_timeout, executors)
        self._pictures = Pictures()
        self._failures = FailureLog(clock)
        self.answer_memory = AnswerMemory(settings.server.answer_memory)
        self._context = {"hosted": settings.hosted}

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """The answer to a request, whatever happens on the way."""
        request_id = sane_request_id(request.headers.get("X-Request-Id"))
        request_context.request_id.set(request_id)
        call = Call(self._clock.now(), self._clock.monotonic(), request_id, request.method)
        response = None
        try:
            reply = await self._outcome(request, call)
            response = await answer(request, reply, request_id)
            return response
        finally:
            if call.reservation is not None:
                call.reservation.release()
            self._tell(call, response)
            request_context.request_id.set(None)  # the connection may bring another one

    async def _outcome(self, request: BaseRequest, call: Call) -> Reply:
        """What the request comes to, a failure too."""
        path = request.rel_url.raw_path
        try:
            reply = await self._reply(request, path, call)
        except Failure as failure:
            if isinstance(failure, TooMany):
                call.retry_after = failure.retry_after
            elif isinstance(failure, Overloaded):
                call.refused_by = BUSY
                await self._authenticator.uncount(call)
            reply = refusal(self._failures.for_client(failure, call), path)
        except Exception:
            log.exception("request %s failed: %s", call.request_id, request.method)
            reply = refusal(apology(call), path)
        return replace(reply, headers={**call.headers, **reply.headers}) if call.headers else reply

    def note_unreadable(self, address: str, request_id: str, status: int, size: int) -> None:
        """Tell the observers of a request that was no sound HTTP, and was answered below."""
        call = Call(self._clock.now(), self._clock.monotonic(), request_id, "", address)
        call.status, call.size = status, size
        for observe in self._observers:
            observe(call)

    def _tell(self, call: Call, response: StreamResponse | None) -> None:
        """Tell the observers how the call ended; one that the client broke off has no answer."""
        call.status = GONE if response is None else response.status
        call.size = 0 if response is None or call.method == "HEAD" else response.content_length or 0
        call.milliseconds = (self._clock.monotonic() - call.began) * 1000
        for observe in self._observers:
            observe(call)

    async def _reply(self, request: BaseRequest, path: str, call: Call) -> Reply:
        peer = self._transport.judge(heads.remote_address(request), request.headers, tls=request.secure)
        call.address = peer.address
        if peer.strict:
            call.headers |= transport.STRICT
        limits = self._settings.limits
        call.judged = limits.enabled and (limits.local or peer.forwarded or not peer.local)
        found = None
        try:
            found = self._router.match(request.method, path)
        finally:
            if not (found and found[0].plain_http):
                transport.require_https(peer)
        route, values = found
        call.route = route
        credentials = heads.credentials(request)
        caller = await self._authenticator.authenticate(route, credentials, call)
        call.resource = _resource(route, values)
        if route.enabled_if is not None:
            route.enabled_if(self._settings)
        parsed = None
        if route.body is not None:
            late = not request.content.is_eof()
            context = self._context | {"caller_id": caller and caller.user_id}
            parsed = await self._bodies.receive(request, route.body, context, token_holder=call.token_holder)
            if late and caller is not None and credentials is not None:
                caller = await self._authenticator.reauthenticate(caller, credentials)
            call.resource = call.resource or parsed.resource
        call.reservation = Reservation(self.answer_memory, call)
        builder = Builder(call.reservation, _size_name(route, request), writes=route.writes)
        given = {"caller": caller, "peer": peer, "answer": builder}
        result = await self._run(route, values, request, parsed, given, call)
        return Reply(
            builder.finish(route, result),
            200 if request.method == "HEAD" else route.status,
            caching=_caching(request, route, caller),
        )

    async def _run(
        self,
        route: Route,
        values: dict[str, str],
        request: BaseRequest,
        parsed: ParsedBody | None,
        given: dict[str, Any],
        call: Call,
    ) -> Any:
        """Check the query, then find the subject, raise what is faulty and run the handler, all in one unit.

        `given`: what else a handler may ask for, by name.
        """
        query, faults = check_query(route.query, request.query.items()) if route.query is not None else (None, {})
        sources = {
            "body": parsed and parsed.model,
            "query": query,
            "now": self._clock.now(),
            "site": self._site,
            "settings": self._settings,
            "metrics": self._metrics,
            "pictures": self._pictures,
            **given,
        }
        run = partial(self._executors.run, token_holder=call.token_holder)
        if route.prepare is not None and sources["body"] is not None:
            sources["prepared"] = await run(Work.HASHING, _call(route.prepare, sources))
        unit = _unit(route, values, sources, parsed, faults)
        if route.nests_tracks and query is not None and query.large and given["caller"] is not None:
            given["answer"].expect_large()
        result = await self._work(route, unit, given["answer"], call)
        if route.render is None or isinstance(result, Download):
            return result
        return await run(Work.DRAWING, _call(route.render, sources | {"drawing": result}))

    async def _work(self, route: Route, unit: Callable[[], Any], builder: Builder, call: Call) -> Any:
        if route.no_store:
            # It may read files, which the event loop never does.
            return await asyncio.to_thread(unit)
        run = self._store.write if route.writes else self._store.read
        if route.slow:
            kind = Work.EXPORTING
        elif route.render is not None and not call.token_holder:
            kind = Work.LOOKING_UP  # anybody may ask for pictures, as often as they like
        else:
            if not builder.large:
                with suppress(LargeAnswerError):
                    return await asyncio.wrap_future(run(unit))
            kind, unit = Work.BUILDING, uncached(unit)
        return await self._executors.run(kind, lambda: run(unit).result(), token_holder=call.token_holder)


def _unit(
    route: Route,
    values: Mapping[str, str],
    sources: dict[str, Any],
    parsed: ParsedBody | None,
    query_faults: dict[str, str],
) -> Callable[[], Any]:
    def unit() -> Any:
        # A unit can run twice (retries), so what it adds to the sources is its own.
        own = dict(sources)
        if route.find is not None:
            own["subject"] = _find(route.find, values, own["caller"])
        else:
            own |= values
        known = (parsed.errors if parsed is not None else {}) | query_faults
        if route.body is not None and parsed is not None and isinstance(parsed.sent, dict):
            known |= route.body.look_up(parsed.sent, known, own.get("subject"))
        if known:
            raise Invalid(known)
        result = _call(route.handler, own)()
        # Encoding holds up neither the event loop nor, where it is not needed in the unit, the writer.
        return result if route.writes or route.render is not None else encoded(result)

    return unit


def _resource(route: Route, values: Mapping[str, str]) -> str | None:
    """The object that the path names, as `playlists/7`; None where the path names none that can exist."""
    if route.find is None:
        return None
    ((name, text),) = values.items()
    # Nothing but ids and `me`: whatever else somebody writes there is kept nowhere.
    if parse_id(text) is None and (text != ME or _takes_id(route.find)):
        return None
    parts = route.path.split("/")
    return f"{parts[parts.index(f'{{{name}}}') - 1]}/{text}"


def _takes_id(find: Callable[..., Any]) -> bool:
    first = next(iter(inspect.signature(find).parameters.values()))
    return first.annotation in (int, "int")


def _find(find: Callable[..., Any], values: Mapping[str, str], caller: Any) -> Any:
    """The subject of the path; a parameter that `find` takes as an int must be an id."""
    (text,) = values.values()
    value: int | str | None = parse_id(text) if _takes_id(find) else text
    if value is None:
        raise NotFound("There is nothing at this path.")
    return find(value, actor=caller) if "actor" in inspect.signature(find).parameters else find(value)


def _call(function: Callable[..., Any], sources: Mapping[str, Any]) -> Callable[[], Any]:
    """The function with its parameters bound by name."""
    arguments = {name: sources[name] for name in inspect.signature(function).parameters}
    return lambda: function(**arguments)


def refusal(failure: Failure, path: str) -> Reply:
    """The answer that tells of the failure, in the body of the path's family."""
    family = Family.INSIGHTS if path == INSIGHTS or path.startswith(f"{INSIGHTS}/") else Family.GENERAL
    return Reply(errors.body_of(failure, family), errors.status_of(failure), headers=errors.headers_of(failure))


def _size_name(route: Route, request: BaseRequest) -> str:
    """The name by which the client knows the size of a page."""
    names = ("perPage", "per_page")
    return next((name for name in names if name in request.query), getattr(route.query, "size_name", names[0]))


def _caching(request: BaseRequest, route: Route, caller: Any) -> str | None:
    """The Cache-Control of a sound answer; None for what may not be kept."""
    if request.method not in SAFE:
        return None
    public = route.access is Access.OPEN or (route.access is Access.PUBLIC and caller is None)
    return "public, no-cache" if public else "private, no-cache"
