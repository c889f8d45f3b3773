"""The HTTP server below the table: its settings for aiohttp, and its orderly end."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiohttp import HttpVersion11
from aiohttp.web import Server
from aiohttp.web_protocol import ERROR

from musicsvc.server.network.protocol import LINGERING_SECONDS, JsonHandler

if TYPE_CHECKING:
    from aiohttp.http import RawRequestMessage
    from aiohttp.web import BaseRequest

    from musicsvc.config import Server as Times
    from musicsvc.server.network.connection_limits import Place, Places
    from musicsvc.server.request.dispatch import Dispatcher

LIMITS: dict[str, Any] = {
    "keepalive_timeout": 10**6,  # ours is kept in JsonHandler, together with the other deadlines
    "lingering_time": LINGERING_SECONDS,
    "auto_decompress": False,
    "access_log": None,
    "logger": logging.getLogger("musicsvc.wire"),
}
POLL_SECONDS = 0.02
NO_REQUEST = ERROR._replace(version=HttpVersion11)  # aiohttp's own would be answered as HTTP/1.0


class JsonServer(Server):
    """Makes a JsonHandler for each connection."""

    def __init__(self, dispatcher: Dispatcher, times: Times, places: Places) -> None:
        """`times`: the settings of the section `server`."""
        super().__init__(dispatcher, **LIMITS)
        self.unreadable = dispatcher.note_unreadable
        self.times = times
        self.places = places

    def handler(self, place: Place) -> JsonHandler:
        """The handler of a new connection."""
        return JsonHandler(self, place, loop=asyncio.get_running_loop(), **self._kwargs)

    def _make_request(self, message: RawRequestMessage, *parts: Any) -> BaseRequest:
        return super()._make_request(NO_REQUEST if message is ERROR else message, *parts)

    async def finish(self, timeout: float) -> None:  # noqa: ASYNC109 - a setting
        """Close idle connections at once and the others after their requests; what takes longer is cut off."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while any(self._asked_to_finish()):  # noqa: ASYNC110 - aiohttp tells nobody that a request is done
                    await asyncio.sleep(POLL_SECONDS)
        handlers = self._handlers()
        await self.shutdown(POLL_SECONDS)
        for handler in handlers:
            handler.cut()

    def _asked_to_finish(self) -> list[bool]:
        """Ask every connection to end; which of them are still busy."""
        handlers = self._handlers()
        for handler in handlers:
            handler.finish_and_close()
        return [handler.busy for handler in handlers]

    def _handlers(self) -> list[JsonHandler]:
        return [handler for handler in self.connections if isinstance(handler, JsonHandler)]
