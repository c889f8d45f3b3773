"""Answers one request in the process of a command, as the server would. No server has this module.

The request takes the same way through protocol, dispatcher, handler and store, over a pair of connected sockets that
nothing else can reach. Its caller is given by the command in place of a token; rate limits do not apply.
"""

import asyncio
import socket
from collections.abc import Awaitable, Mapping
from http.client import HTTPConnection
from typing import Any, NamedTuple

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.networks import root_url
from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.app import App
from musicsvc.server.call import Call
from musicsvc.server.network.connection_limits import ConnectionSlots, Slot
from musicsvc.server.network.protocol import HttpServer
from musicsvc.server.peer import Peer, served_over_https
from musicsvc.server.request.dispatch import Dispatcher
from musicsvc.server.routes.route import Route
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
    reason: str
    headers: list[tuple[str, str]]
    body: bytes


class GivenCaller(Authenticator):
    """Takes every request for one of `caller`, or of nobody, whatever its headers are."""

    caller: Identity | None = None

    def authenticate(self, route: Route, header: str | None, call: Call) -> Awaitable[None] | None:  # noqa: ARG002 - of no matter
        if (caller := self.caller) is not None:
            call.account_id, call.token_holder = caller.user_id, caller.api_access and not caller.suspended
        return self.count(route, caller, None, call)


class DirectDispatcher(Dispatcher):
    def _peer(self, request: object) -> Peer:  # noqa: ARG002 - the sockets have no address
        https = served_over_https(self._settings.server)
        return Peer(
            THIS_MACHINE, secure=True, local=True, forwarded=False, encrypted=https, hsts=https, limits_apply=False
        )


class InProcess(App):
    """The server for a single request, without background jobs and observers."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, caller: Identity | None) -> None:
        """`caller`: the account that sends the request; None: it has no token."""
        self._caller = caller
        super().__init__(settings, store, clock, root_url(settings.server))

    def _build_dispatcher(self, clock: Clock, sources: Mapping[str, Any]) -> Dispatcher:
        settings, store, freshness = self._settings, self._store, self._freshness
        authenticator = GivenCaller(store, clock, settings, self._authenticator.limiter, freshness)
        authenticator.caller = self._caller
        return DirectDispatcher(settings, store, clock, authenticator, freshness, self._executors, [], sources)

    async def answer(self, request: Request) -> Response:
        """Return the response to the request. Call it once."""
        ours, client = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the library's signature
        slots = ConnectionSlots(1, 0)
        slot = slots.acquire(ours, THIS_MACHINE)
        assert slot is not None  # noqa: S101 - there is room for one
        server = HttpServer(self._dispatcher, self._settings.server, slots)
        try:
            await self._connect(server, slot)
            return await asyncio.to_thread(_exchange, client, request)
        finally:
            await server.finish(self._settings.server.shutdown_timeout)
            await asyncio.to_thread(self._executors.close)
            await self.counter.close()

    async def _connect(self, server: HttpServer, slot: Slot) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: server.connection(slot), slot.socket)


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
        return Response(found.status, found.reason, found.getheaders(), found.read())
    finally:
        connection.close()
