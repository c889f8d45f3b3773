"""Lets assistants call endpoints as tools (MCP over Streamable HTTP, without sessions and streams)."""

import copy
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson

from musicsvc.clock import Clock
from musicsvc.errors import Failure, Forbidden, Invalid, Malformed, NotFound, Overloaded
from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.call import BUSY, CLIENT_CLOSED, Call, Exchange, Head, Observer
from musicsvc.server.handlers.tools import NEWEST, REVISIONS
from musicsvc.server.request.running import HandlerRunner, read_query
from musicsvc.server.responses import errors
from musicsvc.server.responses.large import Reservation
from musicsvc.server.responses.responses import Reply
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.fields import Query, parse_id
from musicsvc.server.schemas.insights import CompareQuery, FindQuery, MoversQuery
from musicsvc.server.schemas.periods import Period, PeriodQuery, TimeframeQuery
from musicsvc.server.schemas.reading import MESSAGES, REQUIRED, check_query
from musicsvc.server.schemas.tools import Message
from musicsvc.server.shapes import dashboards, insights
from musicsvc.server.shapes.envelope import JSON, Representation
from musicsvc.store.plays.subjects import KINDS

PARSE_ERROR, NO_REQUEST, NO_METHOD, BAD_PARAMS, MISMATCH, NO_REVISION = -32700, -32600, -32601, -32602, -32020, -32022
CALL = "tools/call"
META = "io.modelcontextprotocol/"
ACCEPTED = Reply(Representation(b"", "text/plain", "", compressible=False), 202)
BEFORE_DATA = b'{"success":true,"data":'  # in an answer of the endpoints
COPIES = 4  # of the data of a result, while it is made
MOST_PARTS = 100  # items of an argument that are looked at; the endpoints accept fewer
OF_KINDS = "Must be one of: track, album, artist."
NO_ID = "Must be the id that the tool find returns."


class Fault(Exception):
    """A message that is no valid request. `status`: of HTTP; clients of the handshake expect 200 for most."""

    def __init__(self, code: int, message: str, status: int = 400, **data: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message} | ({"data": data} if data else {})


@dataclass(frozen=True, slots=True)
class Tools:
    """Answers the messages of assistants. A call of a tool takes the way of a request to its endpoint.

    `receive`, `public`, `notify`: receive bodies, hide details of failures, and note calls, as for other requests.
    """

    routes: Iterable[Route]
    origins: Collection[str]
    sources: Mapping[str, Any]
    clock: Clock
    runner: HandlerRunner
    limiter: RateLimiter
    receive: Callable[[Exchange], Awaitable[None]]
    public: Callable[[Failure, Call], Failure]
    notify: Observer

    async def answer(self, exchange: Exchange) -> Reply:
        """Answer a message. Raises Forbidden for browser code of other origins."""
        origin = exchange.request.headers.get("Origin")
        if origin is not None and origin not in self.origins:
            raise Forbidden("Code of this origin may not use the tools. Ask the operator of the service to allow it.")
        number: int | str | None = None
        newest = True
        try:
            message = await self._read(exchange)
            number = message.id
            if number is None:
                return ACCEPTED
            newest = _check_revision(message, exchange.request.headers)
            if message.method == CALL:
                result = await self._call(exchange, message.params)
            else:
                result = self._describe(exchange, message)
        except Fault as fault:
            return Reply({"jsonrpc": "2.0", "id": number, "error": fault.error}, fault.status if newest else 200)
        kind = {"resultType": "complete"} if newest else {}
        return Reply({"jsonrpc": "2.0", "id": number, "result": kind | result}, 200)

    async def _read(self, exchange: Exchange) -> Message:
        try:
            await self.receive(exchange)
        except Malformed as failure:
            raise Fault(PARSE_ERROR, failure.message) from None
        parsed = exchange.parsed
        if parsed is None or not isinstance(parsed.model, Message) or parsed.sent.get("id", 0) is None:
            found = parsed.errors if parsed is not None and parsed.errors else {"id": "Must not be null."}
            raise Fault(NO_REQUEST, "; ".join(f"{name}: {text}" for name, text in found.items()))
        return parsed.model

    def _describe(self, exchange: Exchange, message: Message) -> JSON:
        try:
            found: JSON = exchange.head.route.call_handler({**self.sources, "body": message})
        except NotFound as failure:
            raise Fault(NO_METHOD, failure.message, 404) from None
        return found

    async def _call(self, exchange: Exchange, params: JSON) -> JSON:
        name, given = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in self.sources["tools"]():
            raise Fault(BAD_PARAMS, "There is no such tool.")
        if not isinstance(given, dict | None):
            raise Fault(BAD_PARAMS, "arguments: Must be an object.")
        try:
            route, subject, query = self._target(name, given or {})
            found = await self._run(exchange, route, subject, query)
        except Failure as failure:
            told = errors.body_of(self.public(failure, exchange.call), insights=True)
            if isinstance(failure, Overloaded):
                await self.limiter.uncount(exchange.call, failure)
            return {"content": [_text(told)], "isError": True}
        return {"content": [_text(found)], "structuredContent": found, "isError": False}

    def _target(self, name: str, given: JSON) -> tuple[Route, str, str]:
        """Return the endpoint of a call, the id of its subject, and its query. Raises Invalid for other arguments."""
        given = {key: value for key, value in given.items() if value is not None}
        schema = self.sources["tools"]()[name]["inputSchema"]
        routes = {route.docs.noun: route for route in self.routes if route.docs.tool == name}
        wrong = {key: MESSAGES["extra_forbidden"] for key in given if key not in schema["properties"]}
        wrong |= {key: REQUIRED for key in schema["required"] if key not in given}
        route = routes.get("")
        if route is None:
            route = routes.get(_in_query(given.pop("kind", "")))
            wrong |= {"kind": OF_KINDS} if route is None else {}
        subject = _in_query(given.pop("id", "")) if "id" in schema["required"] else ""
        if "id" in schema["required"] and parse_id(subject) is None:
            wrong.setdefault("id", NO_ID)
        if wrong or route is None:
            raise Invalid(wrong)
        parts = (
            (key, part) for key, of in given.items() for part in (of[:MOST_PARTS] if isinstance(of, list) else [of])
        )
        sent = [(key, _in_query(part)) for key, part in parts]
        if route.query is TimeframeQuery and (wrong := check_query(PeriodQuery, sent, now=self.clock.now())[1]):
            raise Invalid(wrong)  # in the words of the argument, which the endpoint calls otherwise
        return route, subject, urlencode([_translated(route, *each) for each in sent])

    async def _run(self, exchange: Exchange, route: Route, subject: str, query: str) -> JSON:
        """Run the endpoint, and note the call like a request of its own. Raises a Failure that the endpoint raises."""
        call = copy.copy(exchange.call)
        call.reservation = exchange.call.reservation = room = Reservation(self.runner.memory, call.address, call.holder)
        call.method, call.route, call.counted, call.began = "GET", route, (), self.clock.monotonic()
        values = dict.fromkeys(route.parameters, subject)
        call.resource = None if route.subject is None else route.subject.resource(*values.values())
        inner = Exchange(call, exchange.peer)
        inner.request = exchange.request.clone(method="GET", rel_url=f"{route.path}?{query}")
        inner.head = Head(inner.request.raw_path, route, values, exchange.head.credentials, call.resource, {})
        inner.given = {"now": self.clock.now()}
        read, _ = read_query(route, inner.request, inner.given["now"])
        call.status = CLIENT_CLOSED
        try:
            found = b"".join((await self.runner.run(inner)).pieces)[len(BEFORE_DATA) : -1]
            room.resize(COPIES * len(found))
            call.status, call.size = route.status, len(found)
        except Exception as error:
            call.status = errors.status_of(error if isinstance(error, Failure) else Failure(""))
            call.refused_by = BUSY if isinstance(error, Overloaded) else None
            raise
        finally:
            call.milliseconds = (self.clock.monotonic() - call.began) * 1000
            self.notify(call)
        period = read.window(inner.given["now"]) if isinstance(read, Period) else None
        chosen: JSON = {} if period is None else dashboards.chosen_by(period)
        page = f"{self.sources['site'].root}{_page(route, subject, read, chosen)}"
        dates: JSON = {} if period is None else {"period": insights.period(period)}
        return {"data": orjson.Fragment(found), "page": page} | dates


def _check_revision(message: Message, headers: Mapping[str, str]) -> bool:
    """Return whether the message is of the newest revision. Raises Fault if it is of none, or not of its form."""
    sent = message.params.get("_meta")
    meta = sent if isinstance(sent, dict) else {}
    named = meta.get(f"{META}protocolVersion"), headers.get("MCP-Protocol-Version")
    for each in named:
        if each is not None and each not in REVISIONS:
            raise Fault(NO_REVISION, "Unsupported protocol version", supported=REVISIONS, requested=str(each))
    if NEWEST not in named:
        return False
    if named != (NEWEST, NEWEST) or headers.get("Mcp-Method") != message.method:
        raise Fault(MISMATCH, "MCP-Protocol-Version and Mcp-Method must say the same as the message and its _meta.")
    if message.method == CALL and headers.get("Mcp-Name") != message.params.get("name"):
        raise Fault(MISMATCH, "Mcp-Name must be the name of the tool.")
    if f"{META}clientCapabilities" not in meta:
        raise Fault(BAD_PARAMS, f"_meta lacks {META}clientCapabilities.")
    return True


def _in_query(value: Any) -> str:
    """Return an argument as the text of a parameter: an empty one for lists and objects, which no parameter takes."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | dict):
        return ""
    return value if isinstance(value, str) else json.dumps(value)  # with integers of any size


def _translated(route: Route, name: str, value: str) -> tuple[str, str]:
    """Return the name and the value that the endpoint has for an argument."""
    if name == "kind" and value in KINDS:
        return name, f"{value}s"
    if name == "period" and route.query is TimeframeQuery:
        return TimeframeQuery.NAME, insights.TIMEFRAME_OF.get(value, value)
    return name, value


def _page(route: Route, subject: str, query: Query | None, chosen: JSON) -> str:
    """Return the path of the page that shows the same. `chosen`: selects the period."""
    path, more = f"/insights/{route.docs.noun}/{subject}", dict[str, str]()
    match query:
        case FindQuery():
            path, more = "/insights", {"q": query.q}
        case CompareQuery():
            path, more = "/insights/compare", {"kind": query.kind[:-1], "ids": ",".join(map(str, query.ids))}
        case MoversQuery(kind="tracks"):
            path = "/insights"
        case MoversQuery():
            path, more = f"/insights/{query.kind}", {"sort": "-plays_change"}
    return f"{path}?{urlencode(more | chosen)}"


def _text(value: JSON) -> JSON:
    return {"type": "text", "text": orjson.dumps(value).decode()}
