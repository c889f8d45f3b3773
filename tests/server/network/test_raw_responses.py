"""The status line of refused requests, and Strict-Transport-Security on every answer."""

import asyncio
import json
import ssl
from contextlib import AsyncExitStack, suppress

import pytest
import trustme

from musicsvc.clock import Clock
from musicsvc.config import Server, Settings
from musicsvc.server.network.raw_responses import MAX_HEAD
from musicsvc.store.engine.store import Store
from tests.support.bounds import Bounds
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, check_sound
from tests.support.raw_connection import connected, request
from tests.support.serving import Client, StartServer, person, running

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

STRICT = "Strict-Transport-Security"
SHORT = 0.2
HALF = b"GET /api/v1/albums HTTP/1.1\r\nHost: localhost\r\nX-Half: "
LINES = HALF + b"a\r\nX-Long: ".join([b"a" * 1000] * 40)
GET = request("GET", ALBUMS)
REFUSED = {
    "400": (b"GARBAGE\r\n\r\n", 400),
    "400 of a later version": (b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 400),
    "400 of an unknown version": (b"GET / HTTP/9.9\r\n\r\n", 400),
    "400 of the earliest form": (b"GET /api/v1/albums\r\n\r\n", 400),
    "400 of HTTP/1.0": (b"GET /api/v1/ albums HTTP/1.0\r\n\r\n", 400),
    "400 of a chunk": (GET[:-2] + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "408": (HALF, 408),
    "431 of one packet": (LINES + b"\r\n\r\n", 431),
    "431 of a head without end": (LINES, 431),
    "431 of many headers": (HALF + b"\r\nX: ".join([b"a"] * 128) + b"\r\n\r\n", 431),
    "431 of a long line": (HALF + b"a" * 9000, 431),
    "431 of a long target": (request("GET", f"{ALBUMS}?a={'a' * 9000}"), 431),
}
# Ordinary answers, by method, target and status.
ANSWERED = (
    ("GET", ALBUMS, 200),
    ("HEAD", ALBUMS, 200),
    ("GET", "/docs/swagger-ui-bundle.js", 200),
    ("GET", "/nothing", 404),
    ("DELETE", ALBUMS, 405),
    ("GET", "/api/v1/users/me", 401),
    ("GET", "/healthz", 200),
    ("POST", ARTISTS, 401),
)


@pytest.mark.parametrize(
    ("public_url", "strict"), [("https://music.test", True), ("http://music.test", False), (None, False)]
)
async def test_a_refused_request_is_answered_as_http_1_1(
    public_url: str | None, *, strict: bool, start_server: StartServer
) -> None:
    settings = Settings(server=Server(public_url=public_url, local_http=True, head_timeout=SHORT))
    client = await start_server(settings)
    for name, (raw, status) in REFUSED.items():
        async with connected(client.root) as wire:
            await wire.send(raw)
            head = (await wire.rest()).partition(b"\r\n\r\n")[0].decode()
        assert head.startswith(f"HTTP/1.1 {status} "), (name, head)
        assert "\r\nConnection: close" in head, name
        assert (STRICT in head) == strict, name


async def test_a_connection_without_a_slot_is_refused_as_http_1_1(store: Store, clock: Clock) -> None:
    settings = Settings(server=Server(public_url="https://music.test", local_http=True, max_connections=1))
    async with running(store, clock, settings) as client, AsyncExitStack() as stack:
        busy = await stack.enter_async_context(connected(client.root))
        await busy.send(request("POST", ARTISTS, "Content-Type: application/json", "Content-Length: 12"))
        wire = await stack.enter_async_context(connected(client.root))
        head = (await wire.rest()).decode()
    assert head.startswith("HTTP/1.1 503 ")
    assert STRICT in head


@pytest.mark.parametrize(
    ("public_url", "headers", "strict"),
    [
        ("https://music.test", (), True),
        ("https://music.test", ("X-Forwarded-Proto: https",), True),
        ("http://music.test", (), False),
        (None, (), False),
        (None, ("X-Forwarded-Proto: https",), True),
        (None, ("X-Forwarded-Proto: http",), False),
    ],
)
async def test_answers_over_https_are_strict(
    public_url: str | None, headers: tuple[str, ...], *, strict: bool, start_server: StartServer
) -> None:
    settings = Settings(server=Server(public_url=public_url, local_http=True))
    client = await start_server(settings)
    async with connected(client.root) as wire:
        for method, target, status in ANSWERED:
            await wire.send(request(method, target, *headers))
            answer = await wire.answer(head=method == "HEAD")
            assert answer.status == (403 if "X-Forwarded-Proto: http" in headers and target != "/healthz" else status)
            assert (answer.headers.get(STRICT) == "max-age=31536000") == strict, target


async def test_plain_http_to_a_hosted_service_is_refused_strictly(store: Store, clock: Clock) -> None:
    async with running(store, clock, Settings(server=Server(public_url="https://music.test"))) as client:
        answer = await client.get("albums")
    assert (answer.status, answer.headers[STRICT]) == (403, "max-age=31536000")


async def test_answers_over_our_own_tls_are_strict(
    certified: tuple[str, str], authority: trustme.CA, start_server: StartServer
) -> None:
    cert, key = certified
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    settings = Settings(server=Server.model_validate({"tls_cert": cert, "tls_key": key}))
    client = await start_server(settings)
    async with connected(client.root, trusting) as wire:
        for method, target, status in ANSWERED:
            await wire.send(request(method, target))
            answer = await wire.answer(head=method == "HEAD")
            assert (answer.status, answer.headers[STRICT]) == (status, "max-age=31536000")
        await wire.send(b"GARBAGE\r\n\r\n")
        assert (await wire.answer()).headers[STRICT]


# Limits on the size of requests: heads, paths, requests sent in advance, bodies.


@pytest.mark.parametrize("pieces", [1, 40])
async def test_a_head_may_have_32_kib(client: Client, pieces: int) -> None:
    def head(size: int) -> bytes:
        lines = [f"X-{number}: {'a' * 1000}" for number in range(size // 1000)]
        return request("GET", ALBUMS, *lines)

    for size, status in ((31_000, 200), (40_000, 431), (120_000, 431)):
        async with connected(client.root) as wire:
            await wire.send(GET)
            assert (await wire.answer()).status == 200
            raw = head(size)
            step = len(raw) // pieces + 1
            with suppress(ConnectionError):
                for at in range(0, len(raw), step):
                    await wire.send(raw[at : at + step])
                    await asyncio.sleep(0)
            answer = await wire.answer()
            check_sound(answer)
            assert answer.status == status, size


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 431)])
async def test_the_path_and_the_headers_may_have_32_kib_to_the_byte(client: Client, more: int, status: int) -> None:
    def head(last: int) -> bytes:
        return request("GET", ALBUMS, *(f"X-{number}: {'a' * 6000}" for number in range(5)), f"X-Last: {'a' * last}")

    rest = MAX_HEAD - len(f"{ALBUMS}HostlocalhostX-Last") - 5 * (len("X-0") + 6000)
    async with connected(client.root) as wire:
        await wire.send(head(rest + more))
        assert (await wire.answer()).status == status


async def test_requests_sent_in_advance_are_all_answered_and_one_too_large_ends_them(client: Client) -> None:
    large = request("GET", ALBUMS, *(f"X-{number}: {'a' * 8000}" for number in range(5)))
    async with connected(client.root) as wire:
        await wire.send(GET * 300)
        assert [(await wire.answer()).status for _ in range(300)] == [200] * 300
        await wire.send(GET + GET + large + GET)
        assert [(await wire.answer()).status for _ in range(3)] == [200, 200, 431]
        assert await wire.rest() == b""


async def test_large_bodies_on_their_way_share_their_room(
    store: Store, clock: Clock, bounds: Bounds, start_server: StartServer
) -> None:
    bounds(max_held=2_500_000)
    _, token = person(store, clock, "ann@label.test")
    body = json.dumps({"name": "x", "more": "y" * 1_000_000}).encode()
    whole = request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, body=body)
    client = await start_server()
    async with AsyncExitStack() as stack:
        first, second, third = [await stack.enter_async_context(connected(client.root)) for _ in range(3)]
        for wire in (first, second):
            await wire.send(whole[:-1])
        await asyncio.sleep(0.3)
        await third.send(whole)
        answer = await third.answer()
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert (await client.holding(token).post("artists", {"name": "small"})).status == 201
        await first.send(whole[-1:])
        assert (await first.answer()).status == 201
        await first.send(whole)
        assert (await first.answer()).status == 201
        await second.send(whole[-1:])
        assert (await second.answer()).status == 201
