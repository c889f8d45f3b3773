"""The stop of a server: what is under way ends, and no connection, task, timer or thread is left."""

import asyncio
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import musicsvc
from musicsvc.clock import Clock
from musicsvc.config import Limits, Server, Settings
from musicsvc.server.app import App
from musicsvc.server.network.protocol import HttpConnection
from musicsvc.store.engine.store import Store
from tests.support.bounds import Bounds
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, SOUND
from tests.support.raw_connection import PATIENCE, connected, request, settled
from tests.support.serving import ServiceServer, person

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

PATIENT = Server(max_connections=4, head_timeout=3600, body_timeout=3600, keepalive_timeout=3600)  # no timer runs out
GET = request("GET", ALBUMS)
OWN = str(Path(musicsvc.__file__).parent)


def left() -> list[str]:
    """Return the tasks and the timers of the service on this event loop."""
    loop: Any = asyncio.get_running_loop()
    coroutines: list[Any] = [task.get_coro() for task in asyncio.all_tasks()]
    timers = [handle._callback for handle in loop._scheduled if not handle.cancelled()]
    tasks = [each.__qualname__ for each in coroutines if each.cr_code.co_filename.startswith(OWN)]
    return tasks + [each.__qualname__ for each in timers if str(each.__module__).startswith("musicsvc.")]


def threads() -> set[str]:
    """Return the names of the threads, apart from those of the event loop and of the store."""
    return {each.name for each in threading.enumerate() if not each.name.startswith(("asyncio_", "store-"))}


class Stoppable:
    """A server that has not been started, and the threads that there were before it."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._threads = threads()
        self._server = ServiceServer(store, clock, settings)

    async def start(self) -> App:
        await self._server.start_server()
        assert self._server.service is not None
        assert left()
        return self._server.service

    @property
    def root(self) -> str:
        return str(self._server._root)

    async def leaves_nothing(self) -> None:
        await settled(lambda: not left())
        assert threads() <= self._threads


async def test_what_is_under_way_is_answered_and_nothing_is_left(store: Store, clock: Clock) -> None:
    token = person(store, clock, "ann@label.test")[1]
    post = request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, body=SOUND)
    stoppable = Stoppable(store, clock, Settings(server=PATIENT, limits=Limits(local=True)))
    service: Any = await stoppable.start()
    root = stoppable.root
    async with connected(root) as kept, connected(root) as silent, connected(root) as busy, connected(root) as half:
        for path in ("/cover-art/templates/1.png", ALBUMS, ALBUMS):  # drawn in a thread, counted, counted in advance
            await kept.send(request("GET", path))
            assert "Connection" not in (await kept.answer()).headers
        await half.send(b"GET / HT")
        await busy.send(post[:-1])
        await settled(lambda: [each for each in service._server.connections if each.busy])
        stopping = asyncio.create_task(service.stop())
        assert [await wire.rest() for wire in (kept, silent, half)] == [b""] * 3
        await busy.send(post[-1:])
        answer = await busy.answer()
        assert (answer.status, answer.headers["Connection"]) == (201, "close")
        assert await busy.rest() == b""
        await stopping
    await stoppable.leaves_nothing()
    assert len(service._acceptor._slots) == 0


def test_a_request_that_arrives_before_its_connection_is_noted_is_answered(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = socket.socketpair()
    here.setblocking(False)
    there.settimeout(PATIENCE)
    begin = HttpConnection.connection_made

    async def run() -> None:
        server = ServiceServer(store, clock, Settings(server=PATIENT))
        await server.start_server()
        made = asyncio.Event()

        def connection_made(connection: HttpConnection, transport: asyncio.BaseTransport) -> None:
            made.set()  # the server stops before the task that accepts goes on
            begin(connection, transport)

        async def stop() -> None:
            await made.wait()
            await server.close()

        monkeypatch.setattr(HttpConnection, "connection_made", connection_made)
        accepting: Any = server.service and server.service._acceptor
        stopping = asyncio.create_task(stop())
        await asyncio.sleep(0)
        there.sendall(GET)
        accepting._connect(here, "192.0.2.1")
        await stopping

    pytest.importorskip("uvloop").run(run())  # which reads before that
    assert there.recv(9_999).startswith(b"HTTP/1.1 403 ")
    there.close()


async def test_of_several_heads_that_are_too_large_the_first_is_answered(store: Store, clock: Clock) -> None:
    stoppable = Stoppable(store, clock, Settings(server=PATIENT))
    service: Any = await stoppable.start()
    large = request("GET", ALBUMS, *(f"X-{number}: {'a' * 1000}" for number in range(40)))
    async with connected(stoppable.root) as wire:
        await settled(lambda: service._server.connections)
        (connection,) = service._server.connections
        connection.data_received(GET + 3 * large)  # in one piece, as a network may deliver it
        connection.data_received(GET)  # it is refused already
        assert [type(message).__name__ for message, _ in connection._messages] == ["RawRequestMessage", "_ErrInfo"]
        assert [answer[:3] for answer in (await wire.rest()).split(b"HTTP/1.1 ")] == [b"", b"200", b"431"]
    await service.stop()
    await stoppable.leaves_nothing()


async def test_connections_that_are_being_encrypted_or_were_rejected_are_closed(
    certified: tuple[str, str], store: Store, clock: Clock
) -> None:
    cert, key = certified
    settings = Settings(server=Server.model_validate({"tls_cert": cert, "tls_key": key, "handshake_timeout": 3600}))
    stoppable = Stoppable(store, clock, settings)
    service: Any = await stoppable.start()
    accepting = service._acceptor
    async with connected(stoppable.root) as silent:
        await settled(lambda: accepting._connecting)
        here, there = socket.socketpair()
        here.setblocking(False)
        accepting._connect(here, "192.0.2.1")
        rejected, other = socket.socketpair()
        accepting._rejected.append(rejected)
        async with asyncio.timeout(PATIENCE):
            await service.stop()
        assert await silent.rest() == b""
        assert (here.fileno(), rejected.fileno(), len(accepting._slots)) == (-1, -1, 0)
        there.close()
        other.close()
    await stoppable.leaves_nothing()


async def test_few_rejected_connections_are_kept_open_and_each_for_a_moment(
    store: Store, clock: Clock, bounds: Bounds
) -> None:
    bounds(max_rejected=2)
    stoppable = Stoppable(store, clock, Settings(server=PATIENT))
    service: Any = await stoppable.start()
    pairs = [socket.socketpair() for _ in range(3)]
    for here, _ in pairs:
        service._acceptor._reject(here)

    def are_open() -> list[bool]:
        return [here.fileno() >= 0 for here, _ in pairs]

    assert are_open() == [False, True, True]
    for _, there in pairs:
        assert there.recv(9_999).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert there.recv(1) == b""
        there.close()
    service._acceptor._close_rejected()
    assert are_open() == [False, False, True]
    service._acceptor._close_rejected()
    service._acceptor._close_rejected()  # all are closed
    assert (are_open(), service._acceptor.rejected) == ([False] * 3, 3)
    await service.stop()


async def test_an_error_in_the_middle_of_an_answer_breaks_the_connection_off(store: Store, clock: Clock) -> None:
    stoppable = Stoppable(store, clock, Settings(server=PATIENT))
    service: Any = await stoppable.start()
    async with connected(stoppable.root):
        await settled(lambda: service._server.connections)
        begun: Any = SimpleNamespace(writer=SimpleNamespace(output_size=1))
        with pytest.raises(ConnectionError):
            service._server.connections[0].handle_error(begun, 400)
    await service.stop()
