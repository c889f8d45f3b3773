"""HTTP connections: the first steps of their requests, and their orderly end.

The private attributes of aiohttp used here are listed and tested in tests/server/network/test_aiohttp_internals.py.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Any, cast

from aiohttp import HttpVersion11, hdrs
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web import BaseRequest, RequestPayloadError, Response, Server, StreamResponse
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from musicsvc.config import Server as ServerSettings
from musicsvc.server.call import Exchange
from musicsvc.server.network.connection_limits import ConnectionSlots, Deadline, Slot
from musicsvc.server.network.raw_responses import INTERNAL, MAX_HEAD, TEXTS, TOO_MANY_HEADERS, fault_of, refusal
from musicsvc.server.peer import served_over_https
from musicsvc.server.request.dispatch import Dispatcher
from musicsvc.server.request.first_steps import LONGEST_HEAD
from musicsvc.server.responses.large import Reservation

log = logging.getLogger("musicsvc.wire")
LINGERING_SECONDS = 2.0  # for a client to finish sending a refused request, and for the TLS closing handshake
WRITE_BUFFER = 64 * 1024
READ_BUFFER = 64 * 1024
MAX_FRAMING = 1024 * 1024  # bytes of chunk sizes, extensions and trailers, and of content that is not parsed yet
HEAD_END = b"\r\n\r\n"
QUEUE = 4  # pipelined requests that may wait; a single packet can contain more


class HttpConnection(RequestHandler):
    """An HTTP connection with deadlines. Error responses never repeat anything that the client sent."""

    __slots__ = (
        *("_answered", "_at_head", "_body_size", "_deadline", "_dispatcher", "_final", "_head_begun", "_head_size"),
        *("_idle_since", "_lost", "_offered", "_payload", "_refused", "_reserved", "_settings", "_slot", "_slots"),
        *("_unclosed", "_unsent"),
        *("begun", "head", "origin"),
    )

    def __init__(
        self,
        server: Server,
        slot: Slot,
        slots: ConnectionSlots,
        settings: ServerSettings,
        dispatcher: Dispatcher,
        **options: Any,
    ) -> None:
        super().__init__(server, **options)
        self._max_msg_queue_size, self._msg_queue_resume_size = QUEUE, QUEUE // 2
        self._slot, self._slots = slot, slots
        self._settings = settings
        self._dispatcher = dispatcher
        self.origin = slot.address, False  # the address of the other end, and whether the connection uses TLS
        self._at_head = True  # the next bytes that the parser gets begin a head
        self.head: bytes | None = None  # of the request in progress
        self._offered: bytes | None = None  # the head that waits for `answer` or `decline`
        self.begun: Exchange | None = None  # of the head offered last, until the dispatcher goes on with it
        self._deadline = Deadline(self._loop, self._on_timeout)
        # aiohttp drops its reference on close, even with unsent data.
        self._unclosed: asyncio.Transport | None = None
        self._payload: StreamReader | None = None  # the body of the latest request
        self._lost: asyncio.Event | None = None  # set when the connection is lost; exists only while `_linger` waits
        self._idle_since = 0.0
        self._unsent = 0  # bytes, when the client was last given time to read
        self._reserved: Reservation | None = None  # the memory of an answer that the client has not read yet
        self._body_size = 0  # bytes received of the latest body and of its framing
        self._head_size = 0  # bytes received of an incomplete head
        self._answered, self._head_begun, self._refused = 0, False, False  # `_answered`: the number of responses sent
        self._final = False  # the request in progress is the last one

    @property
    def busy(self) -> bool:
        """Whether a request has no response yet, or part of a response has not been sent yet."""
        return self.in_flight > 0 or (self._unclosed is not None and self._has_unsent(self._unclosed))

    def finish(self) -> bool:
        """Close the connection after the responses to all requests received; the last has `Connection: close`.

        Return whether it is still busy.
        """
        self._final = True
        if not self.in_flight:
            self.force_close()
        return self.busy

    def finish_next(self) -> None:
        """Close the connection after its next response, so that a request that is already under way gets a response."""
        self._final = True

    async def hang_up(self) -> None:
        """Close the connection in order, without a further response. Wait briefly for the client to notice."""
        self._refused = self._final = True
        if self._unclosed is not None and self._unclosed.can_write_eof():
            await self._linger()
        self.force_close()

    def abort(self) -> None:
        """Close the connection at once and discard unsent data, including data in the system's buffers."""
        if self._unclosed is not None:
            self._slot.discard_unsent()
            self._unclosed.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._unclosed = cast("asyncio.Transport", transport)
        self._unclosed.set_write_buffer_limits(WRITE_BUFFER)
        if self.ssl_context is not None:
            self.origin = self._slot.address, True
            self._unclosed.set_read_buffer_limits(READ_BUFFER)  # type: ignore[attr-defined]  # TLS transports have it
        self._wait_for_request(self._settings.head_timeout)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes. Refuse a head that is too large or too late, and a body with too much framing."""
        if self._refused or self._slot.released:
            return
        alone = self._at_head and self._request_count == self._answered and not self._final
        if alone and self._dispatcher.stages.offer(self, data):
            self._offered, self._slot.pending = data, True
            self._request_count += 1
            return
        self._receive(self._withdraw() + data)

    def _receive(self, data: bytes) -> None:
        """Pass bytes to aiohttp, which parses them and starts on the requests that they complete."""
        count, began, self._at_head, self.head = self._request_count, self._at_head, False, None
        in_head = self._payload is None or self._payload.is_eof()
        super().data_received(data)
        if self._request_count > count:
            self._requests_received(self._head_size + len(data), self._request_count - count)
            self._note_head(data, whole=began)
            last = self._messages[-1][0]
            if isinstance(last, RawRequestMessage) and last.upgrade and not self._upgraded:
                more = len(data.partition(HEAD_END)[2]) > int(last.headers.get(hdrs.CONTENT_LENGTH, 0))
                self._final |= more  # aiohttp drops what follows an offer of another protocol than websocket
        elif in_head and data:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse(431)
            elif not self._head_begun and not self.in_flight:
                self._head_begun = True
                if self._answered:
                    self._deadline.set(self._settings.head_timeout)
        elif self._payload is not None:
            self._body_size += len(data)
            if self._body_size > self._payload.total_bytes + MAX_FRAMING:
                self._payload.set_exception(RequestPayloadError("more framing than content"))
                self._refused = self._final = True

    def _note_head(self, data: bytes, *, whole: bool) -> None:
        """Note whether the head of the only request in progress was the end of these bytes. `whole`: and their begin.

        A head after it can then be recognized without parsing it.
        """
        if self.in_flight > 1 or self._refused or not data.endswith(HEAD_END):
            return
        message, payload = cast("tuple[RawRequestMessage, StreamReader]", self._messages[0])
        persistent = not (message.should_close or message.upgrade) and message.version == HttpVersion11
        self._at_head = persistent and payload is EMPTY_PAYLOAD
        if self._at_head and whole and message.method == hdrs.METH_GET and len(data) <= LONGEST_HEAD:
            self.head = data

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._release()
        if self.in_flight:
            self._deadline.clear()
        else:
            self._wait_for_request(self._settings.keepalive_timeout)

    def _await_reading(self) -> None:
        """Give the client `write_timeout` seconds to read WRITE_BUFFER bytes."""
        self._unsent = 0 if self._unclosed is None else self._unclosed.get_write_buffer_size()
        self._deadline.set(self._settings.write_timeout)

    def _release(self) -> None:
        if self._reserved is not None:
            self._reserved.release()
            self._reserved = None

    def eof_received(self) -> bool:  # type: ignore[override]  # aiohttp's own always closes
        """Return True if complete requests still await responses. The connection then stays open for sending."""
        self._final = True
        if self._lost is not None:
            return False
        current = [self._current_request.content] if self._current_request is not None else []
        payloads = [*current, *(payload for _, payload in self._messages)]
        # asyncio cannot keep TLS half open.
        return self.ssl_context is None and self.in_flight > 0 and all(payload.is_eof() for payload in payloads)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the slot of the connection. Cancel the task of the connection if all requests have been answered."""
        self._deadline.end()
        self._slots.release(self._slot)
        self._release()
        self._withdraw()
        self._unclosed = None
        if self._lost is not None:
            self._lost.set()
        task = self._task_handler
        super().connection_lost(exc)
        if task is not None and not self.in_flight:
            task.cancel()

    @property
    def in_flight(self) -> int:
        """The number of requests that have arrived and have no complete response yet."""
        return self._request_count - self._answered

    def _withdraw(self) -> bytes:
        """Take back the offered head, if there is one, and return its bytes."""
        head, self._offered, self._slot.pending = self._offered, None, False
        if head is None:
            return b""
        self._request_count -= 1
        return head

    def awaits(self, head: bytes) -> bool:
        if self._offered is not head:
            return False
        ready = not self._final and self._unclosed is not None and not self._has_unsent(self._unclosed)
        if not ready:
            self.decline()
        return ready

    def answer(self, response: bytes, reserved: Reservation | None) -> None:
        assert self._unclosed is not None  # noqa: S101 - while it awaits the response
        self._offered, self._reserved = None, reserved
        self._unclosed.write(response)
        self._answered += 1
        if not self.writing_paused:
            self._release()
            self._wait_for_request(self._settings.keepalive_timeout)

    def decline(self) -> None:
        """Let aiohttp parse the offered head and pass the request to the dispatcher."""
        if (head := self._withdraw()) and self._unclosed is not None:
            self._receive(head)

    @staticmethod
    def _has_unsent(transport: asyncio.Transport) -> bool:
        """Return whether part of a response, or the end of the connection, must still be sent to the client."""
        return transport.is_closing() or transport.get_write_buffer_size() > 0

    async def finish_response(
        self, request: BaseRequest, resp: StreamResponse, start_time: float | None
    ) -> tuple[StreamResponse, bool]:
        """Send the response, with `Connection: close` if it is the last response of the connection."""
        # Parsing the rest in small chunks would block the event loop for a second per MiB, and a client that was not
        # told to continue may leave its body out: its next request would be taken for the body (RFC 9110, 10.1.1).
        unsure = hdrs.TRANSFER_ENCODING in request.headers or hdrs.EXPECT in request.headers
        if unsure and not request.content.is_eof():
            request.content.feed_eof()
            self._refused = self._final = True
        if self._final and self.in_flight == 1:
            resp.force_close()
        offered = self._upgraded  # another protocol; aiohttp now parses what was sent behind that
        try:
            done = await super().finish_response(request, resp, start_time)
            if offered and self._messages:
                self._requests_received(MAX_HEAD + 1, len(self._messages))
            if self._refused and self.in_flight == 1:
                await self._linger()
            return done
        finally:
            self._answered += 1
            if self._messages:
                self._payload = self._messages[-1][1]
            if not self.in_flight and self._unclosed is not None:
                self._wait_for_request(self._settings.keepalive_timeout)

    def _wait_for_request(self, seconds: float) -> None:
        """Give the client `seconds` to send the next request. The connection is idle until the request arrives."""
        self._head_begun, self._head_size = False, 0
        self._idle_since = now = self._loop.time()
        self._slots.mark_idle(self._slot)
        self._deadline.set(seconds, now)

    async def _linger(self) -> None:
        """Wait briefly before closing, because closing while the client still sends could discard the response."""
        self._slots.mark_idle(self._slot)
        if self._unclosed is not None:
            self._lost = asyncio.Event()
            if self._unclosed.can_write_eof():
                self._unclosed.write_eof()
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGERING_SECONDS):
                    await self._lost.wait()

    def _requests_received(self, size: int, count: int) -> None:
        """Check the newest `count` requests, which arrived in `size` bytes. Refuse the first invalid one."""
        last, self._payload = self._messages[-1]
        self._refused = isinstance(last, _ErrInfo)
        self._slots.mark_busy(self._slot)
        if not self.writing_paused:
            self._deadline.clear()
        self._body_size = self._head_size = 0
        for at in range(len(self._messages) - count, len(self._messages)):
            if status := fault_of(self._messages[at][0], size):
                self._refuse(status, at)
                break

    def _on_timeout(self) -> None:
        answering = self._offered is not None and not self.writing_paused  # at the end of this turn
        if self._unclosed is None or answering:
            return
        more = self._idle_since + self._settings.write_timeout - self._loop.time()
        unsent = self._has_unsent(self._unclosed)
        if self.writing_paused and self._unclosed.get_write_buffer_size() <= self._unsent - WRITE_BUFFER:
            self._await_reading()
        elif self.writing_paused or (unsent and more <= 0):
            self.abort()
        elif unsent:
            self._deadline.set(more)
        elif self._head_begun:
            self._refuse(408)
        else:
            self.force_close()

    def _refuse(self, status: int, at: int | None = None) -> None:
        """Queue an error response, the last of the connection. `at`: drop the queued requests from this index on."""
        while at is not None and len(self._messages) > at:
            self._messages.pop()
            self._request_count -= 1
        self._refused = True
        self._messages.append((_ErrInfo(status, HttpProcessingError(), ""), EMPTY_PAYLOAD))
        self._request_count += 1
        self._slots.mark_busy(self._slot)
        self._deadline.clear()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)  # aiohttp takes the response from the queue

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # of aiohttp; may repeat client data
    ) -> StreamResponse:
        """Return the response to invalid HTTP, after which the connection is closed.

        Raises `ConnectionError` if a part of another response was sent.
        """
        if isinstance(exc, LineTooLong) or message == TOO_MANY_HEADERS:
            status = 431
        if status >= INTERNAL:
            log.error("unhandled exception while handling a request", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("part of the response has already been sent")
        hsts = self.origin[1] or served_over_https(self._settings)
        body, headers = refusal(TEXTS.get(status, TEXTS[INTERNAL]), hsts=hsts)
        self._dispatcher.stages.note_unreadable(self._slot.address, status, len(body), headers)
        response = Response(status=status, body=body, headers=headers)
        response.force_close()
        return response
