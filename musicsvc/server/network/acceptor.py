"""Acceptance of connections: connection limits, TLS handshakes, and 503 responses to rejected connections."""

import asyncio
import errno
import socket
import ssl
from collections import deque
from contextlib import suppress

from aiohttp import hdrs

from musicsvc.server.logs.throttled_warning import ThrottledWarning
from musicsvc.server.network.connection_limits import ConnectionSlots, Slot
from musicsvc.server.network.http_server import HttpServer
from musicsvc.server.network.protocol import LINGERING_SECONDS
from musicsvc.server.network.raw_responses import BUSY, NOT_ENCRYPTED, encoded, refusal
from musicsvc.server.peer import served_over_https

BATCH = 16  # connections accepted in a row before the event loop continues with requests
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
RETRY_SECONDS = 0.1  # until the next attempt if the system is out of files or memory
MAX_REJECTED = 64  # rejected connections kept open at once
ACCEPTED_SECONDS = 0.1  # for connections that were accepted when the server stops
REJECTED_SECONDS = 1.0  # for a rejected client to read its 503; closing at once could discard the response
TLS_BEGIN = b"\x16"  # a record of the handshake
WARNING_SECONDS = 10.0  # between two warnings


class Acceptor:
    """Accepts the connections of one process and passes them to the HTTP server."""

    def __init__(
        self,
        listener: socket.socket,
        server: HttpServer,
        slots: ConnectionSlots,
        tls: ssl.SSLContext | None,
        handshake_timeout: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._server = server
        self._slots = slots
        self._tls = tls
        self._tls_timeouts = (
            {"ssl_handshake_timeout": handshake_timeout, "ssl_shutdown_timeout": LINGERING_SECONDS} if tls else {}
        )
        self._connecting: dict[asyncio.Task[None], Slot] = {}
        self._rejected: deque[socket.socket] = deque()
        self._retry: asyncio.TimerHandle | None = None
        self._warning = ThrottledWarning(WARNING_SECONDS, self._loop.time)
        self.rejected = 0

    def open(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listener, self._accept)

    async def drain(self) -> None:
        """Stop accepting connections, and wait for the TLS handshakes in progress."""
        self.stop_accepting()
        await asyncio.gather(*self._connecting, return_exceptions=True)

    async def close(self) -> None:
        """Stop accepting connections, and drop connections whose TLS handshake is in progress."""
        self.stop_accepting()
        if self._connecting:  # without TLS all are through in a moment, and their requests may have arrived
            await asyncio.wait(self._connecting, timeout=ACCEPTED_SECONDS)
        connecting = dict(self._connecting)
        for task in connecting:
            task.cancel()
        await asyncio.gather(*connecting, return_exceptions=True)
        for slot in connecting.values():  # a cancelled task has not dropped its connection
            self._drop(slot)
        while self._rejected:
            self._rejected.popleft().close()

    def stop_accepting(self) -> None:
        if self._listener.fileno() < 0:
            return  # it is closed
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        for at in range(BATCH):
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in EXHAUSTED:
                    if at == 0:  # the system says so also if nobody waits any more
                        self._pause(error)
                    return
                continue  # the client closed the connection while it was queued
            connection.setblocking(False)  # noqa: FBT003 - the library's signature
            self._connect(connection, str(address[0]))

    def _connect(self, connection: socket.socket, address: str) -> None:
        slot = self._slots.acquire(connection, address)
        if slot is None:
            self._reject(connection)
            return
        task = self._loop.create_task(self._handshake(slot))
        self._connecting[task] = slot
        task.add_done_callback(self._connecting.pop)

    async def _handshake(self, slot: Slot) -> None:
        """Pass the connection to the HTTP server, after the TLS handshake if TLS is enabled. Refuse plain HTTP then."""
        try:
            if self._tls is not None and (first := await self._peek(slot.socket)) != TLS_BEGIN:
                self._refuse(slot) if first else self._drop(slot)
                return
            await self._loop.connect_accepted_socket(
                lambda: self._server.connection(slot), slot.socket, ssl=self._tls, **self._tls_timeouts
            )
        except OSError:  # the handshake failed or timed out, or the connection was evicted
            self._drop(slot)

    async def _peek(self, connection: socket.socket) -> bytes:
        """Return the first byte of the client, which stays unread, or nothing if it has left. Raises OSError."""
        with suppress(BlockingIOError):
            return connection.recv(1, socket.MSG_PEEK)
        arrived = asyncio.Event()
        self._loop.add_reader(connection, arrived.set)
        try:
            async with asyncio.timeout(self._tls_timeouts["ssl_handshake_timeout"]):
                await arrived.wait()
        finally:
            self._loop.remove_reader(connection)
        return connection.recv(1, socket.MSG_PEEK)

    def _refuse(self, slot: Slot) -> None:
        """Answer plain HTTP with 400, and note it like other requests that are not valid HTTP."""
        body, headers = refusal(NOT_ENCRYPTED, hsts=False)
        self._server.dispatcher.stages.note_unreadable(slot.address, 400, len(body), headers)
        self._slots.release(slot)
        self._send_last(slot.socket, encoded(400, body, headers))

    def _drop(self, slot: Slot) -> None:
        self._slots.release(slot)
        with suppress(OSError):
            slot.socket.close()

    def _reject(self, connection: socket.socket) -> None:
        """Close the connection. Without TLS, send a 503 response first."""
        self.rejected += 1
        self._warning.warn("server.max_connections is reached; connections rejected so far: %s", self.rejected)
        if self._tls is not None:
            connection.close()
            return
        body, headers = refusal(BUSY, hsts=served_over_https(self._server.settings))
        self._send_last(connection, encoded(503, body, headers | {hdrs.RETRY_AFTER: "1"}))

    def _send_last(self, connection: socket.socket, response: bytes) -> None:
        """Send a response, and close the connection after the client could read it."""
        with suppress(OSError):
            connection.send(response)
            connection.shutdown(socket.SHUT_WR)
        self._rejected.append(connection)
        if len(self._rejected) > MAX_REJECTED:
            self._rejected.popleft().close()
        else:
            self._loop.call_later(REJECTED_SECONDS, self._close_rejected)

    def _close_rejected(self) -> None:
        if self._rejected:
            self._rejected.popleft().close()

    def _pause(self, error: OSError) -> None:
        """Stop accepting connections for a moment, and evict an idle connection to free its resources."""
        self._loop.remove_reader(self._listener)
        self._retry = self._loop.call_later(RETRY_SECONDS, self.open)
        self._slots.evict_idle()
        self._warning.warn("cannot accept connections (%s); check the limit of open files", error.strerror)
