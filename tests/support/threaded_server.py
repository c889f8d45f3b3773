"""A server on another thread, so that its CPU time can be measured apart from the client's."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.network.tls import Configuration
from musicsvc.store.engine.store import Store

LOOP_SECONDS = 0.05  # of CPU time at most for any body
TRIES = 5  # of which the cheapest counts: the same work takes longer on a busy machine


class Cost(NamedTuple):
    """Status and size of an answer, and the CPU seconds of the event loop and of the whole server."""

    status: int
    size: int
    loop: float
    server: float


class Connection:
    """A connection to the server."""

    def __init__(self, port: int, thread: threading.Thread) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._loop_clock = time.pthread_getcpuclockid(thread.ident or 0)

    def cost(self, *pieces: bytes, pause: float = 0) -> Cost:
        """Send a request, with a pause after each piece, and return what it costs."""
        loop, server = self._times()
        for piece in pieces:
            self._socket.sendall(piece)
            time.sleep(pause)
        head, _, body = self._receive().partition(b"\r\n\r\n")
        size = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
        while len(body) < size:
            body += self._receive()
        loop_after, server_after = self._times()
        return Cost(int(head.split(b" ")[1]), size, loop_after - loop, server_after - server)

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> bytes:
        data = self._socket.recv(2**20)
        assert data, "the server closed the connection"
        return data

    def _times(self) -> tuple[float, float]:
        return time.clock_gettime(self._loop_clock), time.process_time() - time.thread_time()


class ThreadedServer:
    """A server that runs on another thread."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._listener = serving.listen("127.0.0.1", 0)
        self.port = self._listener.getsockname()[1]
        self.root = Configuration(settings, tls=None).root(self._listener)
        self._app = App(settings, store, clock, self.root)
        self._loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._loop.run_forever)
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self._app.start(self._listener), self._loop).result(30)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._app.stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.thread.join()
        self._loop.close()


@contextmanager
def threaded_server(store: Store, clock: Clock, settings: Settings | None = None) -> Iterator[ThreadedServer]:
    """Run a server on another thread for the block."""
    server = ThreadedServer(store, clock, settings or Settings())
    try:
        yield server
    finally:
        server.stop()
