"""The server that HTTP connections belong to, and its orderly shutdown.

The private attributes of aiohttp used here are listed and tested in tests/server/network/test_aiohttp_internals.py.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Any

from aiohttp import HttpVersion11
from aiohttp.http import RawRequestMessage
from aiohttp.web import BaseRequest, Server
from aiohttp.web_protocol import ERROR

from musicsvc.config import Server as ServerSettings
from musicsvc.server.network.connection_limits import ConnectionSlots, Slot
from musicsvc.server.network.protocol import LINGERING_SECONDS, HttpConnection
from musicsvc.server.request.dispatch import Dispatcher

OPTIONS: dict[str, Any] = {
    "keepalive_timeout": 10**6,  # in effect disabled: HttpConnection has its own keep-alive timeout
    "lingering_time": LINGERING_SECONDS,
    "auto_decompress": False,
    "access_log": None,
    "logger": logging.getLogger("musicsvc.wire"),
}
POLL_SECONDS = 0.02
DRAIN_POLL_SECONDS = 0.1
NO_REQUEST = ERROR._replace(version=HttpVersion11)  # aiohttp's own value would result in an HTTP/1.0 response


class HttpServer(Server):
    def __init__(self, dispatcher: Dispatcher, settings: ServerSettings, slots: ConnectionSlots) -> None:
        super().__init__(dispatcher, **OPTIONS)
        self.settings = settings
        self.dispatcher = dispatcher
        self._slots = slots

    def connection(self, slot: Slot) -> HttpConnection:
        loop = asyncio.get_running_loop()
        return HttpConnection(self, slot, self._slots, self.settings, self.dispatcher, loop=loop, **self._kwargs)

    def _make_request(self, message: RawRequestMessage, *parts: Any) -> BaseRequest:
        return super()._make_request(NO_REQUEST if message is ERROR else message, *parts)

    async def finish(self, timeout: float) -> None:  # noqa: ASYNC109 - a setting
        """Close idle connections at once, busy ones after their requests. Abort the rest after `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while sum(map(HttpConnection.finish, self._connections_open())):  # noqa: ASYNC110 - aiohttp has no event
                    await asyncio.sleep(POLL_SECONDS)
        connections = self._connections_open()
        await self.shutdown(POLL_SECONDS)
        for connection in connections:
            connection.abort()

    async def drain(self) -> None:
        """Close each connection after its next response, or when it has been idle for too long, and wait for that."""
        self.finish_next()
        while self._connections_open():  # noqa: ASYNC110 - aiohttp has no event for closed connections
            await asyncio.sleep(DRAIN_POLL_SECONDS)

    def finish_next(self) -> None:
        """Let the next response of each connection be its last."""
        for connection in self._connections_open():
            connection.finish_next()

    def _connections_open(self) -> list[HttpConnection]:
        return [connection for connection in self.connections if isinstance(connection, HttpConnection)]
