"""Responses from memory to requests whose heads (request line and headers) were answered from memory before.

Such a GET is admitted at the end of the turn of the event loop in which it arrives, before aiohttp starts a task for
it: the head need not be parsed again. If the response is in memory, it is sent at once; else the dispatcher goes on
from there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, cast

from aiohttp import HttpVersion11, hdrs
from aiohttp.http import RawRequestMessage
from aiohttp.typedefs import RawHeaders
from cachetools import LRUCache

from musicsvc.clock import Clock
from musicsvc.errors import Failure
from musicsvc.server.call import Call, Exchange, Head, Observer
from musicsvc.server.peer import Peer
from musicsvc.server.responses.responses import (
    NOT_MODIFIED,
    REQUEST_ID_HEADER,
    Negotiation,
    common_headers,
    conditional,
    serialize,
)
from musicsvc.server.shapes.envelope import Representation

log = logging.getLogger("musicsvc")
HEADS, HEAD_BYTES = 4096, 2048  # the most that are kept, and the memory of one, about
LONGEST_HEAD = 2048  # bytes; longer heads are not kept
RAW_REQUEST_ID = REQUEST_ID_HEADER.lower().encode()
LONGEST_BODY = 64 * 1024  # bytes; the dispatcher sends longer bodies in pieces, as the client reads them


class Connection(Protocol):
    """A connection that offers requests, one at a time."""

    origin: tuple[str, bool]  # the address of the other end, and whether the connection uses TLS
    begun: Exchange | None  # the exchange of the offered request, for the dispatcher to go on with

    @property
    def offering(self) -> bool:
        """Whether the offer is still open."""

    def answer(self, response: bytes) -> None:
        """Send the response to the offered request."""

    async def hang_up(self) -> None:
        """Close the connection in order, without a further response."""

    def abort(self) -> None:
        """Close the connection at once and discard unsent data."""

    def decline(self) -> None:
        """Pass the offered request to the dispatcher, if the offer is still open."""


@dataclass(slots=True, eq=False)
class KnownHead:
    """A head that was remembered, with the status and the constant headers of its last response from memory."""

    head: Head
    peer: Peer
    negotiation: Negotiation
    _answered: tuple[str, str] | None = None  # the tag of that response, and its Cache-Control
    _status: int = 0
    _lines: str = ""

    def response(self, found: Representation, caching: str) -> tuple[int, str]:
        """Return the status of a response from memory, and its constant headers as text."""
        if self._answered != (found.tag, caching):
            given = self.head.headers  # the call has them, too
            headers = {**given, **self.head.handling.headers()}
            response = conditional(found, [found.content], self.negotiation, headers, caching)
            constant = {name: value for name, value in response.headers.items() if name not in given}
            response = response._replace(headers=constant)
            self._answered, self._status, self._lines = (found.tag, caching), response.status, response.lines
        return self._status, self._lines


class Offer(NamedTuple):
    connection: Connection
    known: KnownHead
    request_id: str | None
    began: float


class FirstSteps:
    def __init__(
        self,
        admit: Callable[[Exchange], Awaitable[None] | None],
        find: Callable[[Exchange], Representation | None],
        clock: Clock,
        request_id: Callable[[str | None, int], str],
        notify: Observer,
    ) -> None:
        """`admit`: see `Stages`; `find`: returns the response of an admitted request if it is in memory.

        `request_id`: returns the id of a request, given the id that its client sent or None, and the time.
        """
        self._admit = admit
        self._find = find
        self._clock = clock
        self._request_id = request_id
        self._notify = notify
        self._heads: LRUCache[object, KnownHead] = LRUCache(HEADS)
        self._offers: list[Offer] = []
        self.answered = 0

    @property
    def size(self) -> int:
        """The bytes of the heads that are kept, about."""
        return len(self._heads) * HEAD_BYTES

    def remember(self, exchange: Exchange) -> None:
        """Remember the head of a request that was answered from memory, so that the next one is answered at once."""
        request = exchange.request
        size = len(request.raw_path) + sum(len(name) + len(value) for name, value in request.raw_headers)
        if request.protocol is not None and request.method == hdrs.METH_GET and size <= LONGEST_HEAD:
            connection = cast("Connection", request.protocol)
            request_id = request.headers.get(REQUEST_ID_HEADER)
            key = _key(connection, request.raw_path, request.raw_headers, request_id)
            self._heads[key] = KnownHead(exchange.head, exchange.peer, Negotiation.of_headers(request.headers))

    def offer(self, connection: Connection, message: RawRequestMessage) -> bool:
        """Accept a GET request if its head is one that was remembered. Return whether the request is accepted."""
        if message.method != hdrs.METH_GET or message.should_close or message.upgrade:
            return False
        request_id = message.headers.get(REQUEST_ID_HEADER)
        key = _key(connection, message.path, message.raw_headers, request_id)
        if key not in self._heads or message.version != HttpVersion11:
            return False
        known = self._heads[key]
        if not self._offers:
            # The version of the database must be read after all requests of this turn have arrived.
            asyncio.get_running_loop().call_soon(self._flush)
        self._offers.append(Offer(connection, known, request_id, self._clock.monotonic()))
        return True

    def _flush(self) -> None:
        offers, self._offers = self._offers, []
        now = self._clock.now()
        for offer in offers:
            if offer.connection.offering:
                self._begin(offer, Call(now, offer.began, self._request_id(offer.request_id, now), hdrs.METH_GET))
            else:
                offer.connection.decline()

    def _begin(self, offer: Offer, call: Call) -> None:
        head = offer.known.head
        offer.connection.begun = exchange = Exchange(call, offer.known.peer)
        exchange.head, call.route = head, head.route
        call.headers |= head.headers
        try:
            waiting = self._admit(exchange)
        except Exception as failure:  # noqa: BLE001 - the dispatcher raises it again
            exchange.failure = failure
        else:
            if waiting is not None:
                exchange.waiting = asyncio.ensure_future(waiting)
                exchange.waiting.add_done_callback(partial(self._go_on, offer, exchange))
                return
        self._finish(offer, exchange)

    def _go_on(self, offer: Offer, exchange: Exchange, waiting: asyncio.Future[None]) -> None:
        """Finish an exchange that had to wait, unless the dispatcher waits for it now."""
        if not waiting.cancelled():
            exchange.failure = waiting.exception()
        if offer.connection.begun is exchange:
            if offer.connection.offering:
                self._finish(offer, exchange)
            else:
                offer.connection.decline()

    def _finish(self, offer: Offer, exchange: Exchange) -> None:
        """Send the response if it is in memory. Otherwise leave the exchange to the dispatcher."""
        try:
            found = self._find(exchange) if exchange.failure is None else None
            if found is not None and (body := _short_body(found, offer.known.negotiation)) is not None:
                self._send(offer, exchange, found, body)
                return
        except Failure as failure:
            exchange.failure = failure
        except Exception:
            log.exception("unhandled exception while answering a request from memory")
        offer.connection.decline()

    def _send(self, offer: Offer, exchange: Exchange, found: Representation, body: bytes) -> None:
        known, call = offer.known, exchange.call
        call.status, lines = known.response(found, known.head.route.caching(anonymous=call.caller is None))
        body = b"" if call.status == NOT_MODIFIED else body
        call.size = len(body)
        content = serialize(call.status, common_headers(call.headers, call.request_id), lines, body)
        offer.connection.begun = None
        offer.connection.answer(content)
        self.answered += 1
        call.milliseconds = (self._clock.monotonic() - call.began) * 1000
        self._notify(call)


def _short_body(response: Representation, negotiation: Negotiation) -> bytes | None:
    """Return the form of the response that the client gets, unless it is long, or a gzip form that is not made yet."""
    body = response.packed if negotiation.packs(response) else response.content
    return body if body is not None and len(body) <= LONGEST_BODY else None


def _key(connection: Connection, target: str, raw: RawHeaders, request_id: str | None) -> object:
    """Return the cache key of a head: the connection's origin, the target, and all headers except the request id."""
    if request_id is not None:
        raw = tuple(pair for pair in raw if pair[0].lower() != RAW_REQUEST_ID)
    return connection.origin, target, raw
