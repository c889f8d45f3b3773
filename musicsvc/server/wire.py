"""The HTTP server below the table: its limits, and JSON answers to what is no HTTP at all."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import hdrs
from aiohttp.web import Response, Server
from aiohttp.web_protocol import RequestHandler

from musicsvc.server.replies import JSON_TYPE, SERVER

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, StreamResponse

log = logging.getLogger("musicsvc.wire")
LIMITS: dict[str, Any] = {
    "keepalive_timeout": 15,
    "lingering_time": 2,
    "auto_decompress": False,
    "access_log": None,
    "logger": log,
}
MESSAGES = {400: "The request is not valid HTTP.", 500: "Something went wrong here."}


class JsonHandler(RequestHandler):
    """A connection; what cannot be parsed is answered with the general error body, and nothing of it is echoed."""

    __slots__ = ()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it may echo what was sent
    ) -> StreamResponse:
        """The answer to a request that never became one; the connection is closed after it."""
        log.debug("refused on the wire: %s %s", status, type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is on its way already")
        text = MESSAGES.get(status, MESSAGES[400 if status < 500 else 500])  # noqa: PLR2004 - the first server error
        body = orjson.dumps({"status": "error", "message": text, "errors": {}})
        headers = {hdrs.SERVER: SERVER, hdrs.CONTENT_TYPE: JSON_TYPE, hdrs.CACHE_CONTROL: "no-store"}
        response = Response(status=status, body=body, headers=headers)
        response.force_close()
        return response


class JsonServer(Server):
    """Makes a JsonHandler for each connection."""

    def __call__(self) -> RequestHandler:
        """A new connection's handler."""
        return JsonHandler(self, loop=asyncio.get_running_loop(), **self._kwargs)
