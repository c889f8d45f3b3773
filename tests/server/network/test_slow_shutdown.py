"""Shutdown with slow clients: requests in progress finish within the timeout, and a second signal ends at once."""

import asyncio
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store import opening
from musicsvc.store.engine import bulk
from musicsvc.store.models import Artist, Track, TrackArtist
from tests.server.conftest import Start
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, SOUND
from tests.support.program import Program, is_running
from tests.support.raw_connection import PATIENCE, connected, in_flight, request, status
from tests.support.serving import person

pytestmark = [pytest.mark.only_on("sqlite"), pytest.mark.slow]


TRACKS = 8_000


@pytest.fixture
def token(store_url: str, clock: MovableClock) -> str:
    """Create a manager with enough tracks for a slow export; return its token."""
    clock.advance(time.time_ns() // 1000 - clock.now())

    def fill(manager: int) -> None:
        artist = Artist.create(name="Prolific", manager=manager, created_at=0).id
        ids = bulk.ids(Track, TRACKS)
        bulk.insert(Track, ("id", "name", "duration", "created_at"), [(each, "n" * 200, 1, 0) for each in ids])
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, artist, 0) for each in ids])

    with opening.connect(store_url) as store:
        account, value = person(store, clock, "ann@label.test")
        store.write(lambda: fill(account)).result()
    return value


def raw(kind: str, token: str) -> bytes:
    """Return the bytes that the client sends: half a body, or the request for a long answer."""
    if kind == "body":
        return request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, body=SOUND)[:-3]
    return request("POST", f"{INSIGHTS}/export/csv", f"Authorization: Bearer {token}")


@asynccontextmanager
async def under_way(program: Program, token: str) -> AsyncIterator[dict[str, socket.socket]]:
    """Open connections with a request in progress: half a body, an unread answer, a running export."""
    host, port = program.root.rpartition("/")[2].split(":")
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        clients = {kind: stack.enter_context(socket.socket()) for kind in ("body", "reader", "export")}
        for kind, client in clients.items():
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await loop.sock_connect(client, (host, int(port)))
            await loop.sock_sendall(client, raw(kind, token))
            if kind == "reader":
                await loop.sock_recv(client, 1)  # the answer is being sent
        await in_flight(program.root, len(clients))
        yield clients


async def rest(client: socket.socket) -> bytes:
    """Read to the end."""
    found = bytearray()
    while piece := await asyncio.get_running_loop().sock_recv(client, 1 << 16):
        found += piece
    return bytes(found)


async def test_what_is_under_way_is_finished(start: Start, token: str) -> None:
    program = start()
    async with under_way(program, token) as clients:
        program.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.2)
        await asyncio.get_running_loop().sock_sendall(clients["body"], SOUND[-3:])
        created, *exported = await asyncio.gather(*map(rest, clients.values()))
    assert created.startswith(b"HTTP/1.1 201 Created\r\n")
    for answer in exported:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        assert body.count(b"\r\n") == 1 + TRACKS
    assert program.process.wait(30) == 0
    assert "Traceback" not in program.err


async def test_what_takes_too_long_is_cut_off(start: Start, token: str) -> None:
    program = start(shutdown_timeout=0.5)
    async with under_way(program, token):
        began = time.monotonic()
        assert program.end(signal.SIGTERM) == 0
        assert 0.4 < time.monotonic() - began < 8
    assert "Traceback" not in program.err


async def test_a_server_that_stops_serves_until_proxies_have_noticed(start: Start) -> None:
    program = start(shutdown_delay=3)
    async with connected(program.root) as old:
        assert [await status(old, "GET", path) for path in (ALBUMS, "/readyz")] == [200, 200]
        program.process.send_signal(signal.SIGTERM)
        await not_ready(program)
        assert [await once(program, path) for path in ("/healthz", "/readyz", ALBUMS)] == [200, 503, 200]
        await old.send(request("GET", ALBUMS))
        last = await old.answer()
        assert (last.status, last.headers["Connection"], await old.rest()) == (200, "close", b"")
        assert is_running(program.process.pid)
    assert program.process.wait(30) == 0
    assert "not ready: The service is shutting down." in program.err


async def test_a_second_signal_ends_the_server_during_the_delay(start: Start) -> None:
    program = start(shutdown_delay=600)
    assert await once(program, "/readyz") == 200
    program.process.send_signal(signal.SIGTERM)
    await not_ready(program)
    assert program.end(signal.SIGTERM) == 1


async def once(program: Program, path: str) -> int:
    """Return the status of a request over a connection of its own."""
    async with connected(program.root) as wire:
        return await status(wire, "GET", path)


async def not_ready(program: Program) -> None:
    """Wait until `/readyz` is 503."""
    async with asyncio.timeout(PATIENCE):
        while await once(program, "/readyz") == 200:  # noqa: ASYNC110 - as asked
            await asyncio.sleep(0.01)
