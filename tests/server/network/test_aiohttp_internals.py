"""The private parts of aiohttp that musicsvc/server/network relies on exist and behave as it expects.

`pyproject.toml` allows one minor version of aiohttp. Run these tests before that bound is raised.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import HttpVersion11, http_exceptions, streams, web
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import ERROR, RequestHandler, _ErrInfo

from tests.support.raw_connection import Wire, request, settled

GET = request("GET", "/")
ATTRIBUTES = (
    *("_current_request", "_loop", "_max_msg_queue_size", "_messages", "_msg_queue_resume_size", "_request_count"),
    *("_task_handler", "_waiter"),
)
METHODS = ("connection_made", "data_received", "pause_writing", "resume_writing", "eof_received", "connection_lost")


class Connection(RequestHandler):
    """A connection that answers errors with their status alone."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,  # noqa: ARG002 - aiohttp's signature
        message: str | None = None,  # noqa: ARG002 - aiohttp's signature
    ) -> web.StreamResponse:
        return web.Response(status=status, text=request.method)


class Server(web.Server):
    """A server that records the messages from which aiohttp makes requests."""

    def __init__(self, **options: Any) -> None:
        self.release = asyncio.Event()
        self.connection: Connection | None = None
        self.messages: list[RawRequestMessage] = []
        super().__init__(self.answer, **options)

    async def answer(self, _request: web.BaseRequest) -> web.StreamResponse:
        await self.release.wait()
        return web.Response(text="done")

    def __call__(self) -> Connection:
        self.connection = Connection(self, loop=asyncio.get_running_loop(), **self._kwargs)
        return self.connection

    def _make_request(self, message: RawRequestMessage, *parts: Any) -> web.BaseRequest:
        self.messages.append(message)
        return super()._make_request(message, *parts)


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[tuple[Connection, Wire]]:
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname()[:2])
    try:
        await settled(lambda: server.connection is not None and server.connection._waiter is not None)
        assert server.connection is not None
        yield server.connection, Wire(reader, writer)
    finally:
        writer.close()
        server.release.set()
        listening.close()
        await server.shutdown(0)


def test_each_private_name_exists() -> None:
    slots = {name for kind in RequestHandler.__mro__ for name in getattr(kind, "__slots__", ())}
    assert {*ATTRIBUTES} <= slots
    assert all(callable(getattr(RequestHandler, name)) for name in (*METHODS, "finish_response", "force_close"))
    assert isinstance(RequestHandler.writing_paused, property)
    assert hasattr(RequestHandler, "ssl_context")
    assert _ErrInfo(400, http_exceptions.HttpProcessingError(), "text").status == 400
    assert callable(web.Server._make_request)
    assert streams.EMPTY_PAYLOAD.is_eof()


async def test_requests_are_counted_and_queued_while_one_is_answered() -> None:
    server = Server()
    async with connected(server) as (connection, wire):
        assert (connection._request_count, list(connection._messages)) == (0, [])
        await wire.send(GET + request("GET", "/second"))
        await settled(lambda: connection._current_request is not None)
        assert connection._request_count == 2
        ((message, payload),) = connection._messages
        assert not isinstance(message, _ErrInfo)
        assert (message.path, payload.is_eof()) == ("/second", True)
        assert connection._waiter is None
        assert connection._task_handler is not None
        assert not connection._task_handler.done()
        server.release.set()
        assert [(await wire.answer()).status for _ in range(2)] == [200, 200]
        await settled(lambda: connection._waiter is not None)
        assert connection._current_request is None


async def test_an_error_that_is_queued_is_answered_by_the_error_handler() -> None:
    server = Server()
    async with connected(server) as (connection, wire):
        connection._messages.append((_ErrInfo(408, http_exceptions.HttpProcessingError(), ""), streams.EMPTY_PAYLOAD))
        connection._request_count += 1
        assert connection._waiter is not None
        connection._waiter.set_result(None)
        assert (await wire.answer()).status == 408
        assert server.messages == [ERROR]


async def test_invalid_http_is_queued_as_an_error() -> None:
    server = Server()
    async with connected(server) as (connection, wire):
        await wire.send(GET)
        await settled(lambda: connection._current_request is not None)
        await wire.send(b"nonsense\r\n\r\n")
        await settled(lambda: connection._request_count == 2)
        ((message, payload),) = connection._messages
        assert isinstance(message, _ErrInfo)
        assert (message.status, payload.is_eof()) == (400, True)


async def test_the_bounds_of_the_queue_are_read_while_requests_arrive() -> None:
    server = Server()
    async with connected(server) as (connection, wire):
        connection._max_msg_queue_size, connection._msg_queue_resume_size = 2, 1
        await wire.send(GET)
        await settled(lambda: connection._current_request is not None)
        await wire.send(GET + GET)
        await settled(lambda: len(connection._messages) == 2)
        assert isinstance(connection.transport, asyncio.Transport)
        assert not connection.transport.is_reading()
        server.release.set()
        assert [(await wire.answer()).status for _ in range(3)] == [200, 200, 200]
        await settled(connection.transport.is_reading)


async def test_a_server_keeps_the_options_of_its_connections() -> None:
    server = Server(keepalive_timeout=7.0, lingering_time=2.0)
    assert (server._kwargs["keepalive_timeout"], server._kwargs["lingering_time"]) == (7.0, 2.0)
    async with connected(server) as (connection, wire):
        assert connection in server.connections
        connection.force_close()
        assert await wire.rest() == b""


def test_the_message_of_an_error_can_be_given_another_version() -> None:
    assert ERROR._replace(version=HttpVersion11).version == HttpVersion11 != ERROR.version
