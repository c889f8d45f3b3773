"""The part of a connection that answers repeated requests from memory, before aiohttp starts a task for them."""

import asyncio
from typing import Any

from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from musicsvc.server.request.dispatch import Dispatcher
from musicsvc.server.request.exchange import Exchange


class OfferingConnection(RequestHandler):
    """A connection that offers requests to `server/request/first_steps.py`, which can answer them from memory."""

    __slots__ = ("_answered", "_dispatcher", "_final", "_offered", "_refused", "_unclosed", "begun", "origin")

    _answered: int  # the number of responses sent
    _dispatcher: Dispatcher
    _final: bool  # the request in progress is the last one
    _offered: Any  # the message that waits for `answer` or `decline`, or None
    _refused: bool
    _unclosed: asyncio.Transport | None  # aiohttp drops its reference on close, even with unsent data
    begun: Exchange | None  # of the request offered last, until it is answered or the dispatcher goes on with it
    origin: tuple[str, bool]  # the address of the other end, and whether the connection uses TLS

    @property
    def in_flight(self) -> int:
        """The number of requests that have arrived and have no complete response yet."""
        return self._request_count - self._answered

    def _offer(self) -> bool:
        """Offer the request that has arrived, to be answered from memory. Return whether the offer is accepted.

        A request with a body is not offered, nor one that must wait for the response to an earlier request.
        """
        self._withdraw()
        message, payload = self._messages[0]
        alone = self.in_flight == 1 and not (self._refused or self._final)
        if not alone or payload is not EMPTY_PAYLOAD or isinstance(message, _ErrInfo):
            return False
        if not self._dispatcher.first_steps.offer(self, message):
            return False
        self._offered = self._messages.popleft()  # or aiohttp would process it after the response before it
        return True

    def _withdraw(self) -> None:
        if self._offered is not None:
            self._messages.appendleft(self._offered)
            self._offered = None

    @property
    def offering(self) -> bool:
        """Whether a request was offered to be answered from memory, and its response is still awaited."""
        waits = self._offered is not None and not self._final
        return waits and self._unclosed is not None and not self._has_unsent(self._unclosed)

    def answer(self, response: bytes) -> None:
        assert self._parser is not None and self._unclosed is not None  # noqa: S101, PT018 - while it is open
        self._offered = None
        self._parser.message_consumed()
        self._unclosed.write(response)
        self._answer_sent()

    def decline(self) -> None:
        """Decline the offer if it is still open: let aiohttp pass the request to the dispatcher."""
        self._withdraw()
        if self._messages:
            self._wake()

    def _wake(self) -> None:
        """Let aiohttp process the requests that have arrived."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @staticmethod
    def _has_unsent(transport: asyncio.Transport) -> bool:
        """Return whether part of a response, or the end of the connection, must still be sent to the client."""
        return transport.is_closing() or transport.get_write_buffer_size() > 0

    def _answer_sent(self) -> None:
        raise NotImplementedError
