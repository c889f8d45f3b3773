"""Where connections come in: accepted as far as there is room, greeted with TLS, or sent away."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from musicsvc.server.logs.throttled_warning import ThrottledWarning
from musicsvc.server.network.protocol import LINGERING_SECONDS
from musicsvc.server.network.raw_responses import busy
from musicsvc.server.peer import served_over_https

if TYPE_CHECKING:
    import ssl

    from musicsvc.server.network.connection_limits import Place, Places
    from musicsvc.server.network.http_server import JsonServer

AT_ONCE = 16  # connections that are accepted before the others' requests have their turn
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
PAUSE_SECONDS = 0.1  # until it is tried again where the system has no more to give
MOST_LEAVING = 64
LEAVING_SECONDS = 1.0  # for one that is sent away to hear why: closing at once may take the answer back
WARNING_SECONDS = 10.0


class Door:
    """Accepts the connections of one process."""

    def __init__(
        self, listener: socket.socket, server: JsonServer, places: Places, tls: ssl.SSLContext | None, greeting: float
    ) -> None:
        """`greeting`: seconds for the handshake of TLS."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._server = server
        self._places = places
        self._tls = tls
        self._patience = {"ssl_handshake_timeout": greeting, "ssl_shutdown_timeout": LINGERING_SECONDS} if tls else {}
        self._arriving: dict[asyncio.Task[None], Place] = {}
        self._leaving: deque[socket.socket] = deque()
        self._retry: asyncio.TimerHandle | None = None
        self._warning = ThrottledWarning(WARNING_SECONDS, self._loop.time)
        self.sent_away = 0

    def open(self) -> None:
        """Accept from now on."""
        self._retry = None
        self._loop.add_reader(self._listener, self._accept)

    async def close(self) -> None:
        """Accept no more; those whose handshake is under way are dropped."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        arriving = dict(self._arriving)
        for task in arriving:
            task.cancel()
        await asyncio.gather(*arriving, return_exceptions=True)
        for place in arriving.values():  # a task that had not begun has dropped nothing
            self._drop(place)
        while self._leaving:
            self._leaving.popleft().close()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in EXHAUSTED:
                    self._rest(error)
                    return
                continue  # it broke off before it was its turn
            connection.setblocking(False)  # noqa: FBT003 - the library's signature
            self._admit(connection, str(address[0]))

    def _admit(self, connection: socket.socket, address: str) -> None:
        place = self._places.take(connection, address)
        if place is None:
            self._send_away(connection)
            return
        task = self._loop.create_task(self._greet(place))
        self._arriving[task] = place
        task.add_done_callback(self._arriving.pop)

    async def _greet(self, place: Place) -> None:
        """Hand the connection over to its protocol, after the handshake where TLS is spoken."""
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._server.handler(place), place.socket, ssl=self._tls, **self._patience
            )
        except OSError:  # the handshake failed, came too late, or made room for another one
            self._drop(place)

    def _drop(self, place: Place) -> None:
        self._places.leave(place)
        with suppress(OSError):
            place.socket.close()

    def _send_away(self, connection: socket.socket) -> None:
        """Tell the client to come back, where it can be told without a handshake."""
        self.sent_away += 1
        self._warning.warn("Every connection that is allowed is busy; %s were sent away.", self.sent_away)
        if self._tls is not None:
            connection.close()
            return
        with suppress(OSError):
            connection.send(busy(hsts=served_over_https(self._server.times)))
            connection.shutdown(socket.SHUT_WR)
        self._leaving.append(connection)
        if len(self._leaving) > MOST_LEAVING:
            self._leaving.popleft().close()
        else:
            self._loop.call_later(LEAVING_SECONDS, self._see_off)

    def _see_off(self) -> None:
        if self._leaving:
            self._leaving.popleft().close()

    def _rest(self, error: OSError) -> None:
        """Leave the others in the system's queue for a moment, and give something back."""
        self._loop.remove_reader(self._listener)
        self._retry = self._loop.call_later(PAUSE_SECONDS, self.open)
        self._places.make_room()
        self._warning.warn("No connection can be accepted just now: %s.", error.strerror)
