"""A connection of the HTTP server: its deadlines, JSON answers to what is no HTTP at all, and its orderly end."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web import Response
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from musicsvc.server.network.framing import Framing, ends_unread_chunks
from musicsvc.server.network.raw_responses import INTERNAL, MAX_HEAD, fault_of, refusal
from musicsvc.server.network.timeouts import Deadline
from musicsvc.server.peer import served_over_https

if TYPE_CHECKING:
    from aiohttp.streams import StreamReader
    from aiohttp.web import BaseRequest, StreamResponse

    from musicsvc.server.network.connection_limits import Place
    from musicsvc.server.network.http_server import JsonServer

log = logging.getLogger("musicsvc.wire")
LINGERING_SECONDS = 2.0  # for the rest of a body that nobody reads, and for TLS to end as it should
WRITE_BUFFER = 64 * 1024
READ_BUFFER = 64 * 1024
AT_ONCE = struct.pack("ii", 1, 0)  # on, for no time
QUEUE = 4  # requests sent in advance that are kept, beside those of the packet that brought the last of them


class JsonHandler(RequestHandler):
    """A connection: what it is waited for, and for how long.

    What cannot be parsed is answered with the general error body, and nothing of it is echoed.
    """

    __slots__ = (
        *("_answered", "_begun", "_deadline", "_framing", "_head", "_last", "_lost", "_payload"),
        *("_place", "_places", "_refused", "_times", "_unreadable", "_waits_since", "_wire"),
    )

    def __init__(self, server: JsonServer, place: Place, **options: Any) -> None:
        super().__init__(server, **options)
        self._max_msg_queue_size, self._msg_queue_resume_size = QUEUE, QUEUE // 2
        self._times = server.times
        self._places = server.places
        self._unreadable = server.unreadable
        self._place = place
        self._deadline = Deadline(self._loop, self._miss)
        self._wire: asyncio.Transport | None = None  # aiohttp forgets its own when it closes, flushed or not
        self._payload: StreamReader | None = None  # of the request that came last
        self._lost: asyncio.Event | None = None  # is set when the connection is gone, where that is waited for
        self._waits_since = 0.0
        self._framing = Framing()
        self._head = 0  # bytes of a request's head that is not whole yet
        self._begun = False
        self._refused = False
        self._answered = 0
        self._last = False

    @property
    def unanswered(self) -> int:
        """How many requests have come and are not answered yet."""
        return self._request_count - self._answered

    @property
    def busy(self) -> bool:
        """Whether a request is not answered yet, or its answer not yet on its way."""
        return self.unanswered > 0 or (self._wire is not None and self._unsent(self._wire))

    def finish_and_close(self) -> None:
        """Answer what has come, tell that this was all, and close."""
        self._last = True
        if not self.unanswered:
            self.force_close()

    def cut(self) -> None:
        """End it, whatever is still to be sent; the system forgets that, too."""
        if self._wire is not None:
            with suppress(OSError):
                self._place.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            self._wire.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._wire = cast("asyncio.Transport", transport)
        self._wire.set_write_buffer_limits(WRITE_BUFFER)
        if self.ssl_context is not None:
            self._wire.set_read_buffer_limits(READ_BUFFER)  # type: ignore[attr-defined]  # TLS transports have it
        self._wait(self._times.head_timeout)

    def data_received(self, data: bytes) -> None:
        """Take what was sent, as long as it can become a request in time and in size."""
        if self._refused or self._place.gone:
            return
        count = self._request_count
        in_head = self._payload is None or self._payload.is_eof()
        super().data_received(data)
        if self._request_count > count:
            self._receive(self._head + len(data), self._request_count - count)
        elif in_head and data:
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._refuse(431)
            elif not self._begun and not self.unanswered:
                self._begun = True
                if self._answered:
                    self._deadline.set(self._times.head_timeout)
        elif self._payload is not None and self._framing.outweighs(self._payload, len(data)):
            self._refused = self._last = True

    def pause_writing(self) -> None:
        """Give the client its time to take what was sent."""
        super().pause_writing()
        self._deadline.set(self._times.write_timeout)

    def resume_writing(self) -> None:
        """Go on: the client has taken it."""
        super().resume_writing()
        self._deadline.clear()

    def eof_received(self) -> bool:  # type: ignore[override]  # aiohttp's own always closes
        """Keep the way back open for a client that has sent all it wants and waits for its answers."""
        self._last = True
        if self._lost is not None:
            return False
        under_way = [self._current_request.content] if self._current_request is not None else []
        payloads = [*under_way, *(payload for _, payload in self._messages)]
        # asyncio cannot keep TLS half open.
        return self.ssl_context is None and self.unanswered > 0 and all(payload.is_eof() for payload in payloads)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop waiting for the rest of a body that nobody sends any more."""
        self._deadline.end()
        self._places.leave(self._place)
        self._wire = None
        if self._lost is not None:
            self._lost.set()
        task = self._task_handler
        super().connection_lost(exc)
        if task is not None and not self.unanswered:
            task.cancel()

    async def finish_response(
        self, request: BaseRequest, resp: StreamResponse, start_time: float | None
    ) -> tuple[StreamResponse, bool]:
        """Send the answer; the last one of a connection says so."""
        if ends_unread_chunks(request):
            self._refused = self._last = True
        if self._last and self.unanswered == 1:
            resp.force_close()
        try:
            done = await super().finish_response(request, resp, start_time)
            if self._refused and self.unanswered == 1:
                await self._linger()
            return done
        finally:
            self._answered += 1
            if self._messages:
                self._payload = self._messages[-1][1]
            if not self.unanswered and self._wire is not None:
                self._wait(self._times.keepalive_timeout)

    def _wait(self, seconds: float) -> None:
        """Wait for a request; the connection may have to make room for another one."""
        self._begun = False
        self._head = 0
        self._waits_since = self._loop.time()
        self._places.wait(self._place)
        self._deadline.set(seconds)

    async def _linger(self) -> None:
        """Let a client that is still sending read its answer; closing at once would take the answer back."""
        self._places.wait(self._place)
        if self._wire is not None:
            self._lost = asyncio.Event()
            if self._wire.can_write_eof():
                self._wire.write_eof()
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGERING_SECONDS):
                    await self._lost.wait()

    def _receive(self, size: int, count: int) -> None:
        """Take note of requests that came with the last so many bytes."""
        last, self._payload = self._messages[-1]
        self._refused = isinstance(last, _ErrInfo)
        self._places.work(self._place)
        if not self.writing_paused:
            self._deadline.clear()
        self._framing = Framing()
        self._head = 0
        for at in range(len(self._messages) - count, len(self._messages)):
            message, _ = self._messages[at]
            if not isinstance(message, _ErrInfo) and (status := fault_of(message, size)):
                self._refuse(status, at)
                return

    @staticmethod
    def _unsent(wire: asyncio.Transport) -> bool:
        """Whether something is still to be taken by the client, its farewell at least."""
        return wire.is_closing() or wire.get_write_buffer_size() > 0

    def _miss(self) -> None:
        """A deadline has passed."""
        if self._wire is None:
            return
        more = self._waits_since + self._times.write_timeout - self._loop.time()
        unsent = self._unsent(self._wire)
        if self.writing_paused or (unsent and more <= 0):
            self.cut()
        elif unsent:
            self._deadline.set(more)
        elif self._begun:
            self._refuse(408)
        else:
            self.force_close()

    def _refuse(self, status: int, at: int | None = None) -> None:
        """Answer with the status where a request would have been, in place of the queued one at `at`, and close."""
        while at is not None and len(self._messages) > at:
            self._messages.pop()
            self._request_count -= 1
        self._refused = True
        self._messages.append((_ErrInfo(status, HttpProcessingError(), ""), EMPTY_PAYLOAD))
        self._request_count += 1
        self._places.work(self._place)
        self._deadline.clear()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it may echo what was sent
    ) -> StreamResponse:
        """The answer to a request that never became one; the connection is closed after it."""
        if status >= INTERNAL:
            log.error("a request failed while it was answered", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is on its way already")
        body, headers = refusal(status, hsts=self.ssl_context is not None or served_over_https(self._times))
        self._unreadable(self._place.address, headers["X-Request-Id"], status, len(body))
        response = Response(status=status, body=body, headers=headers)
        response.force_close()
        return response
