"""Answers one request in the process of a command, as the server would. No server has this module.

The request takes the same way through protocol, dispatcher, handler and store, over a pair of connected sockets that
nothing else can reach. Its caller is given by the command in place of a token; rate limits do not apply.
"""

import asyncio
import socket
from collections.abc import Awaitable
from dataclasses import replace
from http.client import HTTPConnection
from typing import NamedTuple

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.networks import root_url
from musicsvc.server.app import App
from musicsvc.server.call import Exchange
from musicsvc.server.network.connection_limits import ConnectionSlots
from musicsvc.server.network.http_server import HttpServer
from musicsvc.server.peer import Peer, served_over_https
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store

THIS_MACHINE = "127.0.0.1"


class Request(NamedTuple):
    """`target`: the path with the base path and the query. `body`: JSON, or None."""

    method: str
    target: str
    body: bytes | None = None


class Response(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class InProcess:
    """The server for a single request, without background jobs and observers."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, caller: Identity | None) -> None:
        """`caller`: the account that sends the request; None: it has no token."""
        self._settings = settings
        self._caller = caller
        self._app = App(settings, store, clock, root_url(settings.server), observed=False)
        https = served_over_https(settings.server)
        peer = Peer(
            THIS_MACHINE, secure=True, local=True, forwarded=False, encrypted=https, hsts=https, limits_apply=False
        )
        dispatcher = self._app.dispatcher
        dispatcher.stages = replace(dispatcher.stages, identify=lambda _: peer, admit=self._admit)

    def _admit(self, exchange: Exchange) -> Awaitable[None] | None:
        """Take the request for one of the caller, or of nobody, whatever its headers are."""
        call, caller = exchange.call, self._caller
        if caller is not None:
            call.account_id, call.token_holder = caller.user_id, caller.api_access and not caller.suspended
        return self._app.authenticator.count(exchange.head.route, caller, None, call)

    async def answer(self, request: Request) -> Response:
        """Return the response to the request. Call it once."""
        ours, client = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the library's signature
        slots = ConnectionSlots(1, 0)
        slot = slots.acquire(ours, THIS_MACHINE)
        assert slot is not None  # noqa: S101 - there is room for one
        server = HttpServer(self._app.dispatcher, self._settings.server, slots)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: server.connection(slot), slot.socket)
            return await asyncio.to_thread(_exchange, client, request)
        finally:
            await server.finish(self._settings.server.shutdown_timeout)
            await asyncio.to_thread(self._app.end_work)
            await self._app.counter.close()


def _exchange(client: socket.socket, request: Request) -> Response:
    """Send the request and receive the whole response."""
    connection = HTTPConnection(THIS_MACHINE)
    connection.sock = client
    headers = {"Accept": "*/*"}
    if request.body is not None:
        headers |= {"Accept": "application/json", "Content-Type": "application/json"}
    try:
        connection.request(request.method, request.target, request.body, headers)
        found = connection.getresponse()
        return Response(found.status, found.getheaders(), found.read())
    finally:
        connection.close()
