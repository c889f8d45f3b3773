"""The way of every request: the checks in the contract's order, one store call, one answer."""

from __future__ import annotations

import asyncio
import inspect
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs

from musicsvc.errors import Failure, Invalid, NotFound
from musicsvc.server import bodies, failures, transport
from musicsvc.server.replies import Reply, answer, sane_request_id
from musicsvc.server.route import SAFE, Access, Family, Route, Router
from musicsvc.server.routes import INSIGHTS, ROUTES
from musicsvc.server.schemas.fields import parse_id
from musicsvc.server.schemas.reading import check, check_query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp.web import BaseRequest, StreamResponse

    from musicsvc.clock import Clock
    from musicsvc.config import Settings
    from musicsvc.server.executors import Executors
    from musicsvc.server.identity import Gatekeeper
    from musicsvc.server.shapes.envelope import Site
    from musicsvc.store.database import Store

log = logging.getLogger("musicsvc")


class Dispatcher:
    """Answers requests by the table of endpoints."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        site: Site,
        gatekeeper: Gatekeeper,
        executors: Executors,
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._site = site
        self._gatekeeper = gatekeeper
        self._executors = executors
        self._router = Router(ROUTES)
        self._transport = transport.Transport(settings)
        self._context = {"hosted": settings.hosted}

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """The answer to a request, whatever happens on the way."""
        request_id = sane_request_id(request.headers.get("X-Request-Id"))
        path = request.rel_url.raw_path
        try:
            reply = await self._reply(request, path)
        except Failure as failure:
            reply = refusal(failure, path)
        except Exception:
            log.exception("request %s failed: %s", request_id, request.method)
            reply = refusal(Failure(f"Something went wrong here. Name request {request_id} to the operator."), path)
        return await answer(request, reply, request_id)

    async def _reply(self, request: BaseRequest, path: str) -> Reply:
        peer = self._transport.judge(_remote(request), request.headers, tls=request.secure)
        found = None
        try:
            found = self._router.match(request.method, path)
        finally:
            if not (found and found[0].plain_http):
                transport.require_https(peer)
        route, values = found
        caller = await self._gatekeeper.admit(route.access, _credentials(request))
        if route.gate is not None:
            route.gate(self._settings)
        sent = None
        if route.body is not None:
            sent = await bodies.read_json(request, route.body, self._settings.server.body_timeout)
        result = await self._run(route, values, request, caller, sent)
        return Reply(
            result, 200 if request.method == "HEAD" else route.status, caching=_caching(request, route, caller)
        )

    async def _run(self, route: Route, values: dict[str, str], request: BaseRequest, caller: Any, sent: Any) -> Any:
        """Check body and query, then find the subject, raise what is faulty and run the handler, all in one unit."""
        context = self._context | {"caller_id": caller and caller.user_id}
        body, faults = check(route.body, sent, context) if route.body is not None else (None, {})
        query, more = check_query(route.query, request.query.items()) if route.query is not None else (None, {})
        sources = {
            "body": body,
            "query": query,
            "caller": caller,
            "now": self._clock.now(),
            "site": self._site,
            "settings": self._settings,
        }
        if route.prepare is not None and body is not None:
            sources["prepared"] = await self._executors.hashing(_call(route.prepare, sources))
        unit = _unit(route, values, sources, sent, faults | more)
        result = await self._work(route, unit)
        return result if route.render is None else await self._executors.drawing(partial(route.render, result))

    async def _work(self, route: Route, unit: Callable[[], Any]) -> Any:
        if route.storeless:
            # It may read files, which the event loop never does.
            return await asyncio.to_thread(unit)
        run = self._store.write if route.writes else self._store.read
        if route.lengthy:
            return await self._executors.exporting(lambda: run(unit).result())
        return await asyncio.wrap_future(run(unit))


def _unit(
    route: Route, values: Mapping[str, str], sources: dict[str, Any], sent: Any, faults: dict[str, str]
) -> Callable[[], Any]:
    def unit() -> Any:
        # A unit can run twice (retries), so what it adds to the sources is its own.
        own = dict(sources)
        if route.find is not None:
            own["subject"] = _find(route.find, values, own["caller"])
        else:
            own |= values
        known = dict(faults)
        if route.body is not None and isinstance(sent, dict):
            known |= route.body.look_up(sent, known, own.get("subject"))
        if known:
            raise Invalid(known)
        return _call(route.handler, own)()

    return unit


def _find(find: Callable[..., Any], values: Mapping[str, str], caller: Any) -> Any:
    """The subject of the path; a parameter that `find` takes as an int must be an id."""
    parameters = inspect.signature(find).parameters
    (text,) = values.values()
    first = next(iter(parameters.values()))
    value: int | str | None = parse_id(text) if first.annotation in (int, "int") else text
    if value is None:
        raise NotFound("There is nothing at this path.")
    return find(value, by=caller) if "by" in parameters else find(value)


def _call(function: Callable[..., Any], sources: Mapping[str, Any]) -> Callable[[], Any]:
    """The function with its parameters bound by name."""
    arguments = {name: sources[name] for name in inspect.signature(function).parameters}
    return lambda: function(**arguments)


def refusal(failure: Failure, path: str) -> Reply:
    """The answer that tells of the failure, in the body of the path's family."""
    family = Family.INSIGHTS if path == INSIGHTS or path.startswith(f"{INSIGHTS}/") else Family.GENERAL
    return Reply(failures.body_of(failure, family), failures.status_of(failure), headers=failures.headers_of(failure))


def _caching(request: BaseRequest, route: Route, caller: Any) -> str | None:
    """The Cache-Control of a sound answer; None for what may not be kept."""
    if request.method not in SAFE:
        return None
    public = route.access is Access.OPEN or (route.access is Access.PUBLIC and caller is None)
    return "public, no-cache" if public else "private, no-cache"


def _credentials(request: BaseRequest) -> str | None:
    """The Authorization header, None where there is none at all; two of them are one that is no token."""
    lines = request.headers.getall(hdrs.AUTHORIZATION, None)
    return None if lines is None else ",".join(lines)


def _remote(request: BaseRequest) -> str:
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return str(peer[0]) if isinstance(peer, tuple) else ""
