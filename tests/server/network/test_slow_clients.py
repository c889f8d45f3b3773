"""Slow clients: each kind is cut off at its deadline, and clients in time are not."""

import asyncio
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
import trustme

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.call import Call
from musicsvc.server.network import tls
from musicsvc.store.engine.store import Store
from tests.support import large_albums
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, SOUND, check_sound
from tests.support.raw_connection import Wire, connected, not_reading, request
from tests.support.serving import Client, StartServer, person, running

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

GET = request("GET", ALBUMS)
BUNDLE_PATH = "/docs/swagger-ui-bundle.js"
BUNDLE = request("GET", BUNDLE_PATH, "Connection: close")  # 1.5 MB
DOCUMENT = request("GET", "/api/v1/openapi.json")
SHORT = 0.3
LONG = 30.0
PATIENCE = 30.0  # on a machine with other work


def patience(**seconds: float) -> Settings:
    """Return settings with long timeouts, except for these."""
    names = ("handshake", "head", "body", "write", "keepalive")
    return Settings(server={f"{name}_timeout": seconds.get(name, LONG) for name in names})


async def drip(wire: Wire, raw: bytes) -> None:
    """Send single bytes with pauses."""
    with suppress(ConnectionError):
        for at in range(len(raw)):
            await wire.send(raw[at : at + 1])
            await asyncio.sleep(SHORT / 8)


@asynccontextmanager
async def dripping(wire: Wire, raw: bytes) -> AsyncIterator[None]:
    task = asyncio.create_task(drip(wire, raw))
    yield
    task.cancel()


async def lasts(wire: Wire) -> float:
    """Return the seconds until the server closes the connection without an answer."""
    began = time.monotonic()
    assert await wire.rest() == b""
    return time.monotonic() - began


async def test_a_connection_that_sends_nothing_is_closed_without_a_word(start_server: StartServer) -> None:
    client = await start_server(patience(head=SHORT))
    async with connected(client.root) as wire:
        assert SHORT * 0.9 < await lasts(wire) < LONG / 2


@pytest.mark.parametrize("raw", [GET, b"\r\n" * 100], ids=["a head", "empty lines"])
@pytest.mark.parametrize("kept", [False, True], ids=["first", "kept"])
async def test_a_head_that_drips_in_is_answered_with_408(raw: bytes, kept: bool, start_server: StartServer) -> None:
    client = await start_server(patience(head=SHORT))
    began = time.monotonic()
    async with connected(client.root) as wire:
        if kept:
            await wire.send(GET)
            assert (await wire.answer()).status == 200
            await asyncio.sleep(SHORT / 4)
            began = time.monotonic()
        async with dripping(wire, raw):
            answer = await wire.answer()
            check_sound(answer)
            assert (answer.status, answer.json["message"]) == (408, "The request did not arrive in time.")
            assert SHORT * 0.9 < time.monotonic() - began < LONG / 2
            assert await wire.rest() == b""


@pytest.mark.slow
async def test_a_kept_connection_has_its_own_deadline(start_server: StartServer) -> None:
    keepalive = 3 * SHORT
    client = await start_server(patience(keepalive=keepalive))
    async with connected(client.root) as wire:
        for _ in range(4):
            await asyncio.sleep(keepalive / 3)
            await wire.send(GET)
            assert (await wire.answer()).status == 200
        assert keepalive * 0.9 < await lasts(wire) < LONG / 2


async def test_a_request_that_has_begun_in_time_is_waited_for(start_server: StartServer) -> None:
    client = await start_server(patience(keepalive=SHORT))
    async with connected(client.root) as wire:
        await asyncio.sleep(1.2 * SHORT)  # a new connection has the timeout of a head
        for _ in range(2):
            await wire.send(GET[:9])
            await asyncio.sleep(SHORT * 1.5)
            await wire.send(GET[9:])
            assert (await wire.answer()).status == 200


async def test_half_a_request_behind_a_whole_one_is_not_waited_for_without_end(start_server: StartServer) -> None:
    client = await start_server(patience(keepalive=SHORT))
    async with connected(client.root) as wire:
        await wire.send(GET + GET[:20])
        assert (await wire.answer()).status == 200
        assert await lasts(wire) < LONG / 2


@pytest.mark.slow
async def test_a_body_that_drips_in_is_answered_with_408(store: Store, clock: Clock, start_server: StartServer) -> None:
    client = await start_server(patience(body=SHORT))
    _, token = person(store, clock, "ann@label.test")
    head = request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, "Content-Length: 9999")
    async with connected(client.root) as wire:
        await wire.send(head)
        async with dripping(wire, SOUND * 9):
            answer = await wire.answer()
            check_sound(answer)
            assert answer.status == 408
            assert await wire.rest() == b""


async def kept_in_memory(client: Client, store: Store, token: str) -> bytes:
    """Return a request whose answer of 0.96 MB is sent from memory, before aiohttp gets the request."""
    large_albums.fill(store, albums=1, tracks=16)
    raw = request("GET", "/api/v1/albums/1", f"Authorization: Bearer {token}")
    async with connected(client.root) as wire:
        for _ in range(3):
            await wire.send(raw)
            assert (await wire.answer()).status == 200
    return raw


async def until_unread(client: Client, size: int) -> None:
    """Wait until about this number of bytes is reserved for clients that have not read their answers."""
    deadline, held = time.monotonic() + PATIENCE, -1.0
    while not size <= held <= size * 1.01:
        assert time.monotonic() < deadline, f"{held} bytes are reserved"
        await asyncio.sleep(0.01)
        figures = (await client.get("/metrics", headers={"Connection": "close"})).body.decode()
        held = float(re.findall(r"^musicsvc_answer_memory_bytes (\S+)", figures, re.MULTILINE)[0])


async def read_to_the_end(client: socket.socket) -> None:
    while await asyncio.get_running_loop().sock_recv(client, 1 << 16):
        pass


async def take(client: socket.socket, pause: float = 0.0) -> int:
    """Read to the end, with a pause after each piece; return the number of bytes."""
    loop = asyncio.get_running_loop()
    size = 0
    with suppress(ConnectionError):
        while piece := await loop.sock_recv(client, 1 << 16):
            size += len(piece)
            await asyncio.sleep(pause)
    return size


async def until_cut_off(client: Client, slow: socket.socket, more: bytes = b"") -> None:
    """Wait until the server has closed the connection that reads nothing. Send `more` over it again and again."""
    deadline = time.monotonic() + PATIENCE
    fresh = {"Connection": "close"}  # a kept connection could be closed while the next request is sent
    while b"\nmusicsvc_connections 1.0\n" not in (await client.get("/metrics", headers=fresh)).body:
        assert time.monotonic() < deadline, "nobody was cut off"
        await asyncio.sleep(SHORT)
        with suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(slow, more)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("raw", "whole"),
    [(BUNDLE, 1_400_000), (DOCUMENT * 19 + request("GET", "/nothing", "Connection: close"), 2_000_000)],
    ids=["one long answer", "many answers"],
)
async def test_who_takes_nothing_of_an_answer_is_cut_off(store: Store, clock: Clock, raw: bytes, whole: int) -> None:
    async with running(store, clock, patience(write=SHORT)) as client, not_reading(client.root, raw) as slow:
        await until_cut_off(client, slow)
        assert await take(slow) < whole
    async with running(store, clock, patience()) as client, not_reading(client.root, raw) as slow:
        await asyncio.sleep(SHORT * 4)
        assert await take(slow) > whole


async def test_who_takes_nothing_gains_no_time_by_asking_for_more(start_server: StartServer) -> None:
    client = await start_server(patience(write=SHORT * 3))
    whole = len((await client.get(BUNDLE_PATH, headers={"Connection": "close"})).body)
    async with not_reading(client.root, request("GET", BUNDLE_PATH)) as slow:
        await until_cut_off(client, slow, more=GET)
        assert await asyncio.wait_for(take(slow), PATIENCE) < whole


async def test_a_server_that_has_ended_aborts_what_nobody_takes(store: Store, clock: Clock) -> None:
    async with AsyncExitStack() as stack:
        async with running(store, clock, Settings(server={"shutdown_timeout": SHORT})) as client:
            slow = await stack.enter_async_context(not_reading(client.root, request("GET", BUNDLE_PATH)))
            await asyncio.sleep(SHORT)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(read_to_the_end(slow), PATIENCE)


async def test_a_server_without_requests_in_progress_ends_at_once(store: Store, clock: Clock) -> None:
    settings = Settings(server={"shutdown_timeout": 2 * PATIENCE})
    for clients in (0, 1):
        async with asyncio.timeout(PATIENCE), running(store, clock, settings) as client:
            for _ in range(clients):
                assert (await client.get("albums")).status == 200  # the connection stays open


async def test_a_few_bytes_that_nobody_takes_do_not_hold_a_connection(start_server: StartServer) -> None:
    """Small answers that together exceed the system's buffers by a little."""
    settings = patience(write=SHORT * 2, keepalive=SHORT)
    client = await start_server(settings)
    async with not_reading(client.root, GET * 420) as slow:
        await until_cut_off(client, slow)
        assert await take(slow) < 420 * 400


@pytest.mark.slow
async def test_who_reads_slowly_and_steadily_gets_everything(start_server: StartServer) -> None:
    write = 8 * SHORT  # longer than a busy machine keeps this process waiting
    client = await start_server(patience(write=write))
    async with not_reading(client.root, BUNDLE, 8192) as slow:
        began = time.monotonic()
        assert await asyncio.wait_for(take(slow, 0.03), 60) > 1_400_000
        assert time.monotonic() - began > write


async def test_a_large_answer_from_memory_holds_its_memory_until_it_is_read(
    store: Store, clock: Clock, start_server: StartServer
) -> None:
    settings = Settings(server=patience().server.model_dump() | {"answer_memory": "4MiB"})  # 1 MiB a client
    client = await start_server(settings)
    _, token = person(store, clock, "ann@label.test")
    raw = await kept_in_memory(client, store, token)
    async with not_reading(client.root, raw) as slow, connected(client.root) as wire:
        await until_unread(client, 960_000)
        await wire.send(raw)
        refused = await wire.answer()
        assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        reading = asyncio.create_task(take(slow))
        await until_unread(client, 0)
        await wire.send(raw)
        whole = await wire.answer()
        reading.cancel()
        assert (whole.status, len(whole.body) > 960_000) == (200, True)


@pytest.mark.slow
async def test_who_reads_a_large_answer_from_memory_has_time_while_it_arrives(
    store: Store, clock: Clock, start_server: StartServer
) -> None:
    write = 8 * SHORT  # longer than a busy machine keeps this process waiting
    client = await start_server(patience(write=write, keepalive=SHORT))
    _, token = person(store, clock, "ann@label.test")
    raw = await kept_in_memory(client, store, token)
    async with not_reading(client.root, raw) as slow:
        await until_cut_off(client, slow)
        assert await take(slow) < 900_000
        await until_unread(client, 0)
    async with not_reading(client.root, raw, 8192) as slow:
        began = time.monotonic()
        assert await asyncio.wait_for(take(slow, 0.06), 60) > 960_000
        assert time.monotonic() - began > write * 1.5


@pytest.mark.slow
async def test_a_handshake_that_does_not_come_is_given_up(
    store: Store, clock: Clock, certified: tuple[str, str], authority: trustme.CA
) -> None:
    times = patience(handshake=SHORT, head=SHORT * 2).server.model_dump()
    settings = Settings(server=times | {"tls_cert": certified[0], "tls_key": certified[1]})
    listener = serving.listen("127.0.0.1", 0)
    app = App(settings, store, clock, "https://music.test")
    await app.start(listener, tls.create_context(settings.server))
    root = f"https://127.0.0.1:{listener.getsockname()[1]}"
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    try:
        for raw in (b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"):
            async with connected(root) as wire:
                await wire.send(raw)
                await wire.rest()
        async with connected(root, trusting) as wire:
            await wire.send(GET)
            assert (await wire.answer()).status == 200
        async with connected(root, trusting) as wire:
            assert await lasts(wire) > SHORT
        async with connected(root, trusting) as wire:
            await wire.send(GET[:20])
            assert (await wire.answer()).status == 408
    finally:
        await app.stop()


async def test_observers_learn_of_a_head_that_came_too_late(anonymous: Client, store: Store, clock: Clock) -> None:
    seen: list[Call] = []
    listener = serving.listen("127.0.0.1", 0)
    app = App(patience(head=SHORT), store, clock, anonymous.root)

    def observe(call: Call) -> None:
        seen.append(call)

    app.dispatcher._observers = [observe]
    await app.start(listener)
    try:
        async with connected(f"http://127.0.0.1:{listener.getsockname()[1]}") as wire:
            await wire.send(GET[:-2])
            answer = await wire.answer()
    finally:
        await app.stop()
    (call,) = seen
    assert (call.status, call.address, call.method, call.route) == (408, "127.0.0.1", "", None)
    assert (call.request_id, call.size) == (answer.headers["X-Request-Id"], len(answer.body))
