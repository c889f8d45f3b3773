"""Records the requests to the API of a demo in its journal. Secrets are removed before anything is kept."""

import asyncio
import json
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from aiohttp import hdrs
from aiohttp.web import BaseRequest, RequestKey, RequestPayloadError, StreamResponse

from musicsvc.clock import Clock
from musicsvc.errors import Failure, Malformed
from musicsvc.redaction import redact, redact_json, redact_unknown
from musicsvc.server.access.authentication import token_of
from musicsvc.server.call import Exchange
from musicsvc.server.demo.faults import Break, Injection
from musicsvc.server.demo.journal import CUT, Contents, Ender, Journal, SentToken
from musicsvc.server.peer import KEY, REPLAYED
from musicsvc.server.request.dispatch import Stages, credentials_of
from musicsvc.server.responses.large import encode
from musicsvc.server.responses.responses import Reply
from musicsvc.server.schemas.reading import decode, parse_json
from musicsvc.server.shapes.envelope import JSON_TYPE, Encoded, Representation
from musicsvc.store.accounts import tokens
from musicsvc.store.engine.store import Store

LONGEST = 16 * 1024  # bytes of a body that are kept
LONGEST_TARGET = 8 * 1024  # characters
LONGEST_TEXT = 512  # characters of a header, a message or the name of a field
MOST_ERRORS = 10
REST_SECONDS = 0.2  # for the body of a request that is refused by its head
CLOSE_WAIT = 8  # the state of a TCP connection that the other end has closed
API = "/api"
GIVEN = "injection"  # in `Exchange.given`
BREAKING = {*Break} - {Break.DUPLICATE}
REFUSED = 400
SENT = ("Accept", "Content-Type", KEY, "If-None-Match", "Prefer", "User-Agent", "X-Demo-Fault")
RETURNED = ("Content-Type", "ETag", REPLAYED, "Preference-Applied", "RateLimit", "RateLimit-Policy", "Retry-After",
            "Token-Expires-At", "WWW-Authenticate", "X-Ignored")  # fmt: skip


@dataclass(slots=True)
class Record:
    """Notes on a request that has not ended."""

    token: SentToken | None = None
    reply: Reply | None = None


RECORD = RequestKey("record", Record)


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records the exchanges that go through `stages`."""

    stages: Stages
    journal: Journal
    store: Store
    clock: Clock

    async def process(self, exchange: Exchange) -> StreamResponse:
        """Record a request to the API. Its token is found before the request is processed, which may end it."""
        if not (exchange.path == API or exchange.path.startswith(f"{API}/")):
            return await self.stages.process(exchange)
        exchange.request[RECORD] = record = Record()
        exchange.received = bytearray()
        response = None
        try:
            if (header := credentials_of(exchange.request)) is not None:
                record.token = await self._token(token_of(header), exchange.call.at)
            return (response := await self.stages.process(exchange))
        finally:
            self._end(exchange, record, response)

    async def _token(self, value: str | None, now: int) -> SentToken:
        if value is None or not tokens.plausible(value):
            return SentToken("unknown")
        found = None
        if tokens.well_formed(value):
            digest = tokens.digest(value)
            with suppress(Failure):
                found = await asyncio.wrap_future(self.store.read(lambda: tokens.identify(digest)))
        if found is None:
            return SentToken("unknown", value[-4:])
        refusal = "revoked" if found.revoked else "expired" if now >= found.expires_at else None
        named = found.token_id, found.token_name, found.scope, found.user_id, found.display_name
        return SentToken(refusal, value[-4:], *named)

    async def respond(self, exchange: Exchange, reply: Reply) -> StreamResponse:
        """Note the response. Wait shortly for the body of a request that was refused before it was read."""
        request = exchange.request
        if (record := request.get(RECORD)) is not None:
            record.reply = reply
            length = request.content_length or 0
            if not exchange.received and 0 < length <= LONGEST and hdrs.EXPECT not in request.headers:
                with suppress(TimeoutError, RequestPayloadError, ConnectionError, asyncio.IncompleteReadError):
                    async with asyncio.timeout(REST_SECONDS):
                        exchange.received = bytearray(await request.content.readexactly(length))
        return await self.stages.respond(exchange, reply)

    def _end(self, exchange: Exchange, record: Record, response: StreamResponse | None) -> None:
        """Add the request to the journal. `response`: None if it was given up."""
        call, request = exchange.call, exchange.request
        injection: Injection | None = exchange.given.get(GIVEN)
        sent = bytes(exchange.received) if exchange.received else None
        body, is_json = (None, False) if sent is None else _readable(sent)
        refusal = _refusal(record.reply)
        lost = response is None or (_is_closed(request) and not response.prepared)
        self.journal.add(
            Contents(sent, _content(record.reply)),
            at=call.at,
            ended_at=self.clock.now(),
            began=call.began,
            ended=self.clock.monotonic(),
            method=request.method,
            target=_clean(request.rel_url.raw_path_qs, LONGEST_TARGET),
            route=call.route and call.route.path,
            status=None if lost or response is None else response.status,
            ended_by=_ended_by(request, response, injection),
            injection=injection,
            request_id=call.request_id,
            token=record.token,
            headers=_chosen(request.headers, SENT),
            body=body,
            size=len(sent or b""),
            is_cut=len(sent or b"") > LONGEST,
            is_json=is_json,
            response_headers={} if lost or response is None else _chosen(response.headers, RETURNED),
            message=_clean(refusal["message"]) if refusal else None,
            errors=_errors(refusal),
        )


def _ended_by(request: BaseRequest, response: StreamResponse | None, injection: Injection | None) -> Ender | None:
    """Return who has closed the connection before the whole response was sent, if anybody has."""
    gone = _is_closed(request)
    if gone and injection is not None and injection.fault in BREAKING:
        return "demo"
    if response is not None and response.body_length:
        return None  # it was sent already, and to its end
    return "client" if gone or response is None or _has_left(request) else None


def _is_closed(request: BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


def _has_left(request: BaseRequest) -> bool:
    """Return whether the client of an open connection has closed its socket (on Linux, else False)."""
    if sys.platform != "linux" or request.transport is None:
        return False
    found = request.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    return bool(found[0] == CLOSE_WAIT)


def _readable(raw: bytes) -> tuple[bytes, bool]:
    """Return a body without secrets, in one line if it is JSON, and whether it is JSON. A long one is cut as a text."""
    try:
        if len(raw) <= LONGEST:
            value = redact_json(parse_json(decode(raw)))
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(), True
    except (Malformed, RecursionError, ValueError):
        pass
    return redact_unknown(raw[:LONGEST].decode(errors="replace")).encode(), False


def _content(reply: Reply | None) -> bytes | None:
    """Return the body of a response if it is JSON."""
    result = None if reply is None else reply.result
    if isinstance(result, Representation):
        return result.content if result.content_type == JSON_TYPE else None
    if isinstance(result, dict):
        result = encode(result)
    return b"".join(result.pieces) if isinstance(result, Encoded) else None


def _refusal(reply: Reply | None) -> Mapping[str, Any]:
    """Return the body of an error response, else an empty one."""
    refused = reply is not None and reply.status >= REFUSED and isinstance(reply.result, dict)
    return reply.result if reply is not None and refused else {}


def _errors(refusal: Mapping[str, Any]) -> dict[str, str]:
    found = islice(refusal.get("errors", {}).items(), MOST_ERRORS)
    return {_clean(name): _clean(message) for name, message in found}


def _chosen(headers: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the headers with these names, without secrets."""
    return {name: _clean(headers[name]) for name in names if name in headers}


def _clean(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text without secrets, in Unicode, and cut if it is too long."""
    text = redact(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return text if len(text) <= longest else f"{text[:longest]}{CUT}"
