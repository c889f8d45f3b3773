"""The HTTP server below the table: its limits, JSON answers to what is no HTTP at all, and its orderly end."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import hdrs
from aiohttp.web import Response, Server
from aiohttp.web_protocol import RequestHandler

from musicsvc.server.replies import JSON_TYPE, SERVER, new_request_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.web import BaseRequest, StreamResponse

    from musicsvc.server.dispatch import Dispatcher

log = logging.getLogger("musicsvc.wire")
LIMITS: dict[str, Any] = {
    "keepalive_timeout": 15,
    "lingering_time": 2,
    "auto_decompress": False,
    "access_log": None,
    "logger": log,
}
INTERNAL = 500
POLL_SECONDS = 0.02


class JsonHandler(RequestHandler):
    """A connection; what cannot be parsed is answered with the general error body, and nothing of it is echoed."""

    __slots__ = ("_answered", "_last", "_unreadable")

    def __init__(
        self, server: JsonServer, unreadable: Callable[[BaseRequest, str, int, int], None], **options: Any
    ) -> None:
        """`unreadable` is told of each request that could not be parsed: its answer's id, status, size."""
        super().__init__(server, **options)
        self._unreadable = unreadable
        self._answered = 0
        self._last = False

    @property
    def unanswered(self) -> int:
        """How many requests have come and are not answered yet."""
        return self._request_count - self._answered

    def finish_and_close(self) -> None:
        """Answer what has come, tell that this was all, and close."""
        self._last = True
        if not self.unanswered:
            self.force_close()

    def eof_received(self) -> bool:  # type: ignore[override]  # aiohttp's own always closes
        """Keep the way back open for a client that has sent all it wants and waits for its answers."""
        self._last = True
        under_way = [self._current_request.content] if self._current_request is not None else []
        payloads = [*under_way, *(payload for _, payload in self._messages)]
        # asyncio cannot keep TLS half open.
        return self.ssl_context is None and self.unanswered > 0 and all(payload.is_eof() for payload in payloads)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop waiting for the rest of a body that nobody sends any more."""
        task = self._task_handler
        super().connection_lost(exc)
        if task is not None and not self.unanswered:
            task.cancel()

    async def finish_response(
        self, request: BaseRequest, resp: StreamResponse, start_time: float | None
    ) -> tuple[StreamResponse, bool]:
        """Send the answer; the last one of a connection says so."""
        if self._last and self.unanswered == 1:
            resp.force_close()
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._answered += 1

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
        text = "The request is not valid HTTP." if status < INTERNAL else "Something went wrong here."
        body = orjson.dumps({"status": "error", "message": text, "errors": {}})
        request_id = new_request_id()
        self._unreadable(request, request_id, status, len(body))
        headers = {
            hdrs.SERVER: SERVER,
            hdrs.CONTENT_TYPE: JSON_TYPE,
            hdrs.CACHE_CONTROL: "no-store",
            "X-Request-Id": request_id,
        }
        response = Response(status=status, body=body, headers=headers)
        response.force_close()
        return response


class JsonServer(Server):
    """Makes a JsonHandler for each connection."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__(dispatcher, **LIMITS)
        self._unreadable = dispatcher.note_unreadable

    def __call__(self) -> RequestHandler:
        """A new connection's handler."""
        return JsonHandler(self, self._unreadable, loop=asyncio.get_running_loop(), **self._kwargs)

    async def finish(self, timeout: float) -> None:  # noqa: ASYNC109 - a setting
        """Close idle connections at once and the others after their requests; what takes longer is cut off."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while any(self._asked_to_finish()):  # noqa: ASYNC110 - aiohttp tells nobody that a request is done
                    await asyncio.sleep(POLL_SECONDS)
        await self.shutdown(POLL_SECONDS)

    def _asked_to_finish(self) -> list[bool]:
        """Ask every connection to end; which of them are still busy."""
        handlers = [handler for handler in self.connections if isinstance(handler, JsonHandler)]
        for handler in handlers:
            handler.finish_and_close()
        return [handler.unanswered > 0 for handler in handlers]
