"""Answers repeated reads from the answer cache at the end of a turn of the event loop, without a task for each.

A connection offers each request when its head (request line and headers) has arrived. The offer is accepted if the
dispatcher has answered a request with the same head from the cache before, because the head need not be parsed again.
All accepted requests of a turn are checked, counted and answered together. The dispatcher answers all others.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from typing import NamedTuple, Protocol, cast

from aiohttp import HttpVersion11, hdrs
from aiohttp.http import RawRequestMessage
from aiohttp.typedefs import RawHeaders
from aiohttp.web import BaseRequest

from musicsvc.clock import Clock
from musicsvc.errors import Failure, TooMany
from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.call import Call, Observer
from musicsvc.server.peer import HSTS, Peer
from musicsvc.server.responses.answer_cache import AnswerCache
from musicsvc.server.responses.negotiation import Negotiation
from musicsvc.server.responses.responses import REQUEST_ID_HEADER
from musicsvc.server.responses.serialized import serialize
from musicsvc.server.routes.route import Access, Route
from musicsvc.server.shapes.representation import Representation

log = logging.getLogger("musicsvc")
HEADS = 4096
LONGEST_HEAD = 2048  # bytes; longer heads are not kept
RAW_REQUEST_ID = REQUEST_ID_HEADER.lower().encode()
LONGEST_BODY = 64 * 1024  # bytes; the dispatcher sends longer bodies in pieces, as the client reads them


class Connection(Protocol):
    """A connection that offers requests, one at a time."""

    origin: tuple[str, bool]  # the address of the other end, and whether the connection uses TLS

    @property
    def offering(self) -> bool:
        """Whether the offer is still open."""

    def answer(self, response: bytes) -> None:
        """Send the response to the offered request."""

    def decline(self) -> None:
        """Pass the offered request to the dispatcher, if the offer is still open."""


class ParsedHead(NamedTuple):
    """The parsed head of a request, with the client of its connection (`peer`)."""

    target: str
    route: Route
    peer: Peer
    resource: str | None
    credentials: str | None  # the Authorization header; None if the route ignores it
    negotiation: Negotiation
    constant: Representation | None  # the response, if it is always the same


class Offer(NamedTuple):
    connection: Connection
    head: ParsedHead
    request_id: str | None
    began: float


class ImmediateAnswers:
    def __init__(
        self,
        authenticator: Authenticator,
        limiter: RateLimiter,
        cache: AnswerCache,
        clock: Clock,
        request_id: Callable[[str | None], str],
        notify: Observer,
    ) -> None:
        """`request_id`: returns the id of a request, given the id that its client sent or None."""
        self._authenticator = authenticator
        self._limiter = limiter
        self._cache = cache
        self._clock = clock
        self._request_id = request_id
        self._notify = notify
        self._heads: OrderedDict[object, ParsedHead] = OrderedDict()
        self._offers: list[Offer] = []
        self._counting: dict[Connection, asyncio.Task[None]] = {}
        self.answered = 0

    def learn(self, request: BaseRequest, call: Call, peer: Peer, constant: Representation | None = None) -> None:
        """Remember the head of a request, so that later requests with the same head can be answered from memory.

        `constant`: the response, if it never changes; otherwise later responses are read from the cache.
        """
        route, headers, raw = call.route, request.headers, request.raw_headers
        size = len(request.raw_path) + sum(len(name) + len(value) for name, value in raw)
        if route is None or request.protocol is None or request.method != hdrs.METH_GET or size > LONGEST_HEAD:
            return
        credentials = headers.get(hdrs.AUTHORIZATION)
        if route.access is Access.OPEN:
            if credentials is not None and self._limiter.applies_to(route, call):
                return  # the token determines which rate limit applies
            credentials = None
        key = _key(cast("Connection", request.protocol), request.raw_path, raw, headers)
        negotiation = Negotiation.of_headers(headers)
        self._heads[key] = ParsedHead(request.raw_path, route, peer, call.resource, credentials, negotiation, constant)
        if len(self._heads) > HEADS:
            self._heads.popitem(last=False)

    def offer(self, connection: Connection, message: RawRequestMessage) -> bool:
        """Accept a GET request if its head is one that was remembered. Return whether the request is accepted."""
        if message.method != hdrs.METH_GET or message.should_close or message.upgrade:
            return False
        key = _key(connection, message.path, message.raw_headers, message.headers)
        head = self._heads.get(key)
        if head is None or message.version != HttpVersion11:
            return False
        self._heads.move_to_end(key)
        if not self._offers:
            # The version of the database must be read after all requests of this turn have arrived.
            asyncio.get_running_loop().call_soon(self._flush)
        self._offers.append(Offer(connection, head, message.headers.get(REQUEST_ID_HEADER), self._clock.monotonic()))
        return True

    def _flush(self) -> None:
        offers, self._offers = self._offers, []
        try:
            self._answer(offers)
        except Failure:
            pass  # the dispatcher reports it to the client
        except Exception:
            log.exception("unhandled exception while answering requests from memory")
        finally:
            for offer in offers:
                if offer.connection not in self._counting:
                    offer.connection.decline()

    def _answer(self, offers: list[Offer]) -> None:
        """Answer the offered requests that can be answered from memory without waiting. Leave out the others."""
        now = self._clock.now()
        found = []
        for offer in offers:
            call = Call(now, offer.began, "", hdrs.METH_GET, offer.head.peer.address)
            response = self._find(offer, call) if offer.connection.offering else None
            if response is not None:
                found.append((offer, call, response))
        for offer, call, response in found:
            with suppress(TooMany):  # the dispatcher says so to the client
                if (counting := self._limiter.count(offer.head.route, call)) is None:
                    self._send(offer, call, response)
                else:
                    task = asyncio.create_task(self._send_once_counted(counting, offer, call, response))
                    self._counting[offer.connection] = task

    def _find(self, offer: Offer, call: Call) -> Representation | None:
        """Complete the call and return its response, or return None if the dispatcher must answer it."""
        head, caller = offer.head, None
        call.route, call.resource, call.judged = head.route, head.resource, head.peer.judged
        if head.credentials is not None:
            caller = self._authenticator.known(head.credentials)
            if caller is None:
                return None
            call.account_id, call.token_id, call.token_holder = caller.user_id, caller.token_id, True
        answer = head.constant or self._cache.get(head.target, head.route.audience(caller))
        return answer if answer is not None and head.negotiation.size(answer) <= LONGEST_BODY else None

    async def _send_once_counted(
        self, counting: Awaitable[None], offer: Offer, call: Call, answer: Representation
    ) -> None:
        try:
            with suppress(TooMany):
                await counting
                if offer.connection.offering:
                    self._send(offer, call, answer)
        finally:
            del self._counting[offer.connection]
            offer.connection.decline()

    def _send(self, offer: Offer, call: Call, answer: Representation) -> None:
        head = offer.head
        caching = head.route.caching(anonymous=call.token_id is None)
        call.request_id = self._request_id(offer.request_id)
        headers = {**HSTS, **call.headers} if head.peer.hsts else call.headers
        call.status, call.size, response = serialize(answer, head.negotiation, headers, caching, call.request_id)
        offer.connection.answer(response)
        self.answered += 1
        call.milliseconds = (self._clock.monotonic() - call.began) * 1000
        self._notify(call)


def _key(connection: Connection, target: str, raw: RawHeaders, headers: Container[str]) -> object:
    """Return the cache key of a head: the connection's origin, the target, and all headers except the request id."""
    if REQUEST_ID_HEADER in headers:
        raw = tuple(pair for pair in raw if pair[0].lower() != RAW_REQUEST_ID)
    return connection.origin, target, raw
