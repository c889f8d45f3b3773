"""Responses from memory to requests whose heads (request line and headers) were answered from memory before.

Such a GET is admitted at the end of the turn of the event loop in which it arrives, before aiohttp gets its bytes: they
need not be parsed again. If the response is in memory, it is sent at once; else aiohttp parses the head, and the
dispatcher goes on from there.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeAlias, cast

from aiohttp import hdrs

from musicsvc.clock import Clock
from musicsvc.errors import Failure
from musicsvc.server.call import Call, Exchange, Observer
from musicsvc.server.peer import HSTS
from musicsvc.server.recent import Recent
from musicsvc.server.responses.large import UNCOUNTED, AnswerMemory, Reservation
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
HEADS, HEAD_BYTES = 4096, 4096  # the most that are kept, and the memory of one, about
PLACE = "\0"  # of what differs from response to response
LONGEST_HEAD = 2048  # bytes; longer heads are not kept
GIVEN_ID = re.compile(rb"\r\nX-Request-Id:([\t -~]{0,256})(?=\r\n[^ \t])", re.IGNORECASE)


class Connection(Protocol):
    """A connection that offers the heads of requests, one at a time."""

    origin: tuple[str, bool]  # the address of the other end, and whether the connection uses TLS
    head: bytes | None  # of the request in progress, if it is a short GET that may be offered when it comes again
    begun: Exchange | None  # the exchange of the offered request, for the dispatcher to go on with

    def awaits(self, head: bytes) -> bool:
        """Return whether this offered head still awaits its response. If no response can be sent now, decline it."""

    def answer(self, response: bytes, reserved: Reservation | None) -> None:
        """Send the response to the offered request. Release the memory reserved for it once the client has read it."""

    async def hang_up(self) -> None:
        """Close the connection in order, without a further response."""

    def abort(self) -> None:
        """Close the connection at once and discard unsent data."""

    def decline(self) -> None:
        """Pass the offered request to the dispatcher, if the offer is still open."""


# The status of a response, and the parts of its head: before the limits, between them and the id, after it.
Frame: TypeAlias = tuple[int, str, str, str]


class KnownHead:
    """A head that was remembered, with the constant parts of its last response from memory."""

    __slots__ = ("_answered", "_frame", "first", "head", "negotiation", "peer")

    def __init__(self, exchange: Exchange) -> None:
        self.head, self.peer = exchange.head, exchange.peer
        self.negotiation = Negotiation.of_headers(exchange.request.headers)
        self.first = {**(HSTS if self.peer.hsts else {}), **self.head.headers}
        self._answered: tuple[object, ...] | None = None  # what `_frame` depends on
        self._frame: Frame | None = None

    def frame(self, found: Representation, call: Call) -> Frame:
        """Return what is constant of the response from memory to a request with this head."""
        answered = found.tag, call.caller is None, call.first is self.first
        if self._frame is None or self._answered != answered:
            self._frame, self._answered = self._build(found, call), answered if call.first is self.first else None
        return self._frame

    def _build(self, found: Representation, call: Call) -> Frame:
        headers = common_headers({**call.first, PLACE: "", **self.head.handling.headers()}, PLACE)
        caching = self.head.route.caching(anonymous=call.caller is None)
        response = conditional(found, [found.content], self.negotiation, headers, caching)
        before, between, after = response.head.split(PLACE)
        return response.status, before, between.removeprefix(": \r\n"), after


Offer: TypeAlias = tuple[Connection, bytes, KnownHead, str | None, float]  # with the id that was sent, and the time


class FirstSteps:
    def __init__(
        self,
        admit: Callable[[Exchange], Awaitable[None] | None],
        find: Callable[[Exchange], Representation | None],
        clock: Clock,
        request_id: Callable[[str | None, int], str],
        notify: Observer,
        memory: AnswerMemory,
    ) -> None:
        """`admit`: see `Stages`; `find`: returns the response of an admitted request if it is in memory.

        `request_id`: returns the id of a request, given the id that its client sent or None, and the time.
        """
        self._admit = admit
        self._find = find
        self._clock = clock
        self._request_id = request_id
        self._notify = notify
        self._memory = memory
        self._heads: Recent[object, KnownHead] = Recent(HEADS)
        self._offers: list[Offer] = []
        self.answered = 0

    @property
    def size(self) -> int:
        """The bytes of the heads that are kept, about."""
        return len(self._heads) * HEAD_BYTES

    def remember(self, exchange: Exchange) -> None:
        """Remember the head of a request that was answered from memory, so that the next one is answered at once."""
        connection = cast("Connection | None", exchange.request.protocol)
        if connection is None or connection.head is None:
            return
        raw, _ = _split(connection.head)
        if REQUEST_ID_HEADER.lower().encode() not in raw.lower():
            self._heads.keep((connection.origin, raw), KnownHead(exchange))

    def offer(self, connection: Connection, raw: bytes) -> bool:
        """Accept the bytes of a request if they are a head that was remembered. Return whether they are accepted."""
        if len(raw) > LONGEST_HEAD:
            return False
        known, request_id = self._heads.recall((connection.origin, raw)), None
        if known is None:
            rest, request_id = _split(raw)
            if request_id is None or (known := self._heads.recall((connection.origin, rest))) is None:
                return False
        if not self._offers:
            # The version of the database must be read after all requests of this turn have arrived.
            asyncio.get_running_loop().call_soon(self._flush)
        self._offers.append((connection, raw, known, request_id, self._clock.monotonic()))
        return True

    def _flush(self) -> None:
        offers, self._offers = self._offers, []
        now = self._clock.now()
        for offer in offers:
            connection, raw, known, request_id, began = offer
            if connection.awaits(raw):
                call = Call(now, began, self._request_id(request_id, now), hdrs.METH_GET)
                connection.begun = exchange = Exchange(call, known.peer)
                exchange.head = head = known.head
                call.route, call.first = head.route, known.first
                self._admit_offered(offer, exchange)

    def _admit_offered(self, offer: Offer, exchange: Exchange) -> None:
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
        connection, raw, *_ = offer
        if connection.begun is exchange and connection.awaits(raw):
            self._finish(offer, exchange)

    def _finish(self, offer: Offer, exchange: Exchange) -> None:
        """Send the response if it is in memory. Otherwise leave the exchange to the dispatcher."""
        connection, _, known, _, _ = offer
        try:
            found = self._find(exchange) if exchange.failure is None else None
            if found is not None and (body := _body(found, known.negotiation)) is not None:
                self._send(connection, known, exchange, found, body)
                return
        except Failure as failure:
            exchange.failure = failure
        except Exception:
            log.exception("unhandled exception while answering a request from memory")
        connection.decline()

    def _send(
        self, connection: Connection, known: KnownHead, exchange: Exchange, found: Representation, body: bytes
    ) -> None:
        call = exchange.call
        call.status, before, between, after = known.frame(found, call)
        body = b"" if call.status == NOT_MODIFIED else body
        call.size = len(body)
        reserved = None
        if call.size > UNCOUNTED:
            reserved = Reservation(self._memory, call.address, call.holder)
            reserved.resize(call.size)
        content = serialize((before, call.limits, between, call.request_id, after), body)
        connection.begun = None
        connection.answer(content, reserved)
        self.answered += 1
        call.milliseconds = (self._clock.monotonic() - call.began) * 1000
        self._notify(call)


def _body(response: Representation, negotiation: Negotiation) -> bytes | None:
    """Return the form of the response that the client gets, or None if that is a gzip form that is not made yet."""
    return response.packed if negotiation.packs(response) else response.content


def _split(raw: bytes) -> tuple[bytes, str | None]:
    """Return a head without its first request id, unless that is long or not in ASCII, and the id, or None."""
    found = GIVEN_ID.search(raw)
    if found is None:
        return raw, None
    return raw[: found.start()] + raw[found.end() :], found[1].strip(b" \t").decode()
