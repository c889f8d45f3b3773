"""Answers repeated reads from the answer cache at the end of a turn of the event loop, without a task for each.

A connection offers a request when its head has arrived. If the dispatcher answered the same head from the cache
before, its meaning is known. All such requests of a turn are checked, counted and answered together. The connection
passes every other request to the dispatcher.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from aiohttp import HttpVersion11, hdrs

from musicsvc.errors import Failure
from musicsvc.server.call import Call
from musicsvc.server.peer import HSTS
from musicsvc.server.responses.negotiation import Negotiation
from musicsvc.server.responses.responses import REQUEST_ID_HEADER
from musicsvc.server.responses.serialized import serialize
from musicsvc.server.routes.route import Access

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from aiohttp.http import RawRequestMessage
    from aiohttp.typedefs import RawHeaders
    from aiohttp.web import BaseRequest

    from musicsvc.clock import Clock
    from musicsvc.server.access.authentication import Authenticator
    from musicsvc.server.access.rate_limits import RateLimiter
    from musicsvc.server.call import Observer
    from musicsvc.server.peer import Peer
    from musicsvc.server.responses.answer_cache import AnswerCache
    from musicsvc.server.routes.route import Route
    from musicsvc.server.shapes.representation import Representation

log = logging.getLogger("musicsvc")
MEANINGS = 4096
LONGEST_HEAD = 2048  # bytes; the meanings of longer heads are not kept
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


class Meaning(NamedTuple):
    """The meaning of a request's head, together with its connection."""

    target: str
    route: Route
    peer: Peer
    resource: str | None
    credentials: str | None  # the Authorization header; None if the route ignores it
    negotiation: Negotiation
    constant: Representation | None  # the response, if it is always the same


class Offer(NamedTuple):
    connection: Connection
    meaning: Meaning
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
        self._meanings: OrderedDict[object, Meaning] = OrderedDict()
        self._offers: list[Offer] = []
        self.answered = 0

    def learn(self, request: BaseRequest, call: Call, peer: Peer, constant: Representation | None = None) -> None:
        """Keep the meaning of a head that the dispatcher answered from the cache, or else with `constant`."""
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
        self._meanings[key] = Meaning(request.raw_path, route, peer, call.resource, credentials, negotiation, constant)
        if len(self._meanings) > MEANINGS:
            self._meanings.popitem(last=False)

    def offer(self, connection: Connection, message: RawRequestMessage) -> bool:
        """Accept a request without a body, if its meaning is known. Return whether it is accepted."""
        if message.method != hdrs.METH_GET or message.should_close or message.upgrade:
            return False
        key = _key(connection, message.path, message.raw_headers, message.headers)
        meaning = self._meanings.get(key)
        if meaning is None or message.version != HttpVersion11:
            return False
        self._meanings.move_to_end(key)
        if not self._offers:
            # The version of the database must be read after all requests of this turn have arrived.
            asyncio.get_running_loop().call_soon(self._flush)
        self._offers.append(Offer(connection, meaning, message.headers.get(REQUEST_ID_HEADER), self._clock.monotonic()))
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
                offer.connection.decline()

    def _answer(self, offers: list[Offer]) -> None:
        """Answer all offers that need nothing but what is in memory."""
        now = self._clock.now()
        found = []
        for offer in offers:
            call = Call(now, offer.began, "", hdrs.METH_GET, offer.meaning.peer.address)
            response = self._find(offer, call) if offer.connection.offering else None
            if response is not None:
                found.append((offer, call, response))
        counted = self._limiter.count_at_once([(offer.meaning.route, call) for offer, call, _ in found])
        for (offer, call, response), headers in zip(found, counted, strict=True):
            if headers is not None:
                self._send(offer, call, response, headers)

    def _find(self, offer: Offer, call: Call) -> Representation | None:
        """Complete the call and return its response, or return None if the dispatcher must answer it."""
        meaning, caller = offer.meaning, None
        call.route, call.resource, call.judged = meaning.route, meaning.resource, meaning.peer.judged
        if meaning.credentials is not None:
            caller = self._authenticator.known(meaning.credentials)
            if caller is None:
                return None
            call.account_id, call.token_id, call.token_holder = caller.user_id, caller.token_id, True
        answer = meaning.constant or self._cache.get(meaning.target, meaning.route.audience(caller))
        return answer if answer is not None and meaning.negotiation.size(answer) <= LONGEST_BODY else None

    def _send(self, offer: Offer, call: Call, answer: Representation, headers: Mapping[str, str]) -> None:
        meaning = offer.meaning
        caching = meaning.route.caching(anonymous=call.token_id is None)
        call.request_id = self._request_id(offer.request_id)
        headers = {**HSTS, **headers} if meaning.peer.hsts else headers
        call.status, call.size, response = serialize(answer, meaning.negotiation, headers, caching, call.request_id)
        offer.connection.answer(response)
        self.answered += 1
        call.milliseconds = (self._clock.monotonic() - call.began) * 1000
        self._notify(call)


def _key(connection: Connection, target: str, raw: RawHeaders, headers: Container[str]) -> object:
    """Return a value that determines the meaning of a head: all of it but the request's id."""
    if REQUEST_ID_HEADER in headers:
        raw = tuple(pair for pair in raw if pair[0].lower() != RAW_REQUEST_ID)
    return connection.origin, target, raw
