"""The status line of refused requests, and Strict-Transport-Security on every answer."""

import ssl
from contextlib import AsyncExitStack

import pytest
import trustme

from musicsvc.clock import Clock
from musicsvc.config import Server, Settings
from musicsvc.store.engine.store import Store
from tests.support.malformed_requests import ALBUMS, ARTISTS
from tests.support.raw_connection import connected, request
from tests.support.serving import StartServer, running

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
