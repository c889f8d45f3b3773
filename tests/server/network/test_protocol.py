"""Requests that no HTTP client sends: every answer is JSON, none is an internal error, no secret is repeated."""

import asyncio
import logging
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis import strategies as st

from musicsvc.server.schemas.fields import Body
from tests.support import malformed_requests
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, SOUND, check_sound
from tests.support.raw_connection import chunked, connected, request
from tests.support.serving import Client
from tests.support.shared_server import on_shared_loop

pytestmark = [pytest.mark.only_on("sqlite"), on_shared_loop]  # the same over either database


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Assert that no request logs an error, or a secret."""
    caplog.set_level(logging.DEBUG)
    yield
    records = caplog.get_records("call")
    assert [record.getMessage() for record in records if record.levelno > logging.INFO] == []
    assert malformed_requests.SECRET not in "".join(record.getMessage() for record in records)
    assert capfd.readouterr().err == ""


def auth(member: Client) -> str:
    return f"Authorization: Bearer {member.token}"


async def test_http_1_0_is_answered_and_closed(member: Client) -> None:
    async with connected(member.root) as wire:
        await wire.send(b"GET /api/v1/albums HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert (await wire.answer()).status == 200
        assert await wire.rest() == b""


async def test_a_body_may_have_1_mib_to_the_byte(member: Client) -> None:
    for size, status in ((Body.most_bytes, 201), (Body.most_bytes + 1, 413)):
        body = SOUND + b" " * (size - len(SOUND))
        for headers, framed in (
            ([], body),
            (["Transfer-Encoding: chunked"], chunked(body[:7], body[7:9], body[9:])),
        ):
            async with connected(member.root) as wire:
                await wire.send(request("POST", ARTISTS, auth(member), JSON, *headers, body=framed))
                answer = await wire.answer()
                check_sound(answer)
                assert answer.status == status, headers


async def test_a_length_beyond_the_limit_is_refused_before_the_body_comes(member: Client) -> None:
    async with connected(member.root) as wire:
        await wire.send(request("POST", ARTISTS, auth(member), JSON, "Content-Length: 9999999999"))
        assert (await wire.answer()).status == 413


async def test_a_client_that_asks_whether_to_go_on_is_told(member: Client) -> None:
    head = request("POST", ARTISTS, auth(member), JSON, "Expect: 100-Continue", f"Content-Length: {len(SOUND)}")
    async with connected(member.root) as wire:
        await wire.send(head)
        assert (await wire.answer()).status == 100
        await wire.send(SOUND)
        assert (await wire.answer()).status == 201
        await wire.send(head.replace(b"Bearer", b"Basic"))
        refused = await wire.answer()
        assert (refused.status, refused.headers["Connection"]) == (401, "close")  # without a request for its body
        await wire.send(request("GET", ALBUMS))  # is not taken for the body
        assert await wire.rest() == b""


async def test_an_expectation_that_nobody_knows_is_ignored(member: Client) -> None:
    async with connected(member.root) as wire:
        await wire.send(request("POST", ARTISTS, auth(member), JSON, "Expect: the unexpected", body=SOUND))
        assert (await wire.answer()).status == 201


async def test_requests_sent_in_one_go_are_answered_in_order(member: Client) -> None:
    async with connected(member.root) as wire:
        post = request("POST", ARTISTS, auth(member), JSON, body=SOUND)
        await wire.send(request("GET", ALBUMS) + request("HEAD", ALBUMS) + post + request("GET", "/nothing"))
        statuses = [(await wire.answer(head=at == 1)).status for at in range(4)]
        assert statuses == [200, 200, 201, 404]


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
async def test_what_follows_the_offer_of_another_protocol_is_answered_or_the_connection_is_closed(
    member: Client, protocol: str
) -> None:
    headers = "Connection: Upgrade", f"Upgrade: {protocol}"
    offer = request("GET", ALBUMS, *headers)
    async with connected(member.root) as wire:
        for alone in (offer, request("POST", ARTISTS, *headers, auth(member), JSON, body=SOUND)):
            await wire.send(alone)  # as clients do that know HTTP/2, too
            assert "Connection" not in (await wire.answer()).headers
        await wire.send(offer + request("GET", ARTISTS))
        first = await wire.answer()
        if protocol == "websocket":
            assert (await wire.answer()).json.keys() == {"status", "artists"}
        else:
            assert (first.status, first.headers["Connection"], await wire.rest()) == (200, "close", b"")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request("GET", ALBUMS).replace(b"HTTP/1.1", b"HTTP/2.0"), 400),
        (request("GET", ALBUMS, *(f"X-{number}: {'a' * 7000}" for number in range(6))), 431),
    ],
)
async def test_what_follows_the_offer_of_another_protocol_has_the_same_limits(
    member: Client, sent: bytes, status: int
) -> None:
    offer = request("GET", ALBUMS, "Connection: Upgrade", "Upgrade: websocket")
    async with connected(member.root) as wire:
        await wire.send(offer + request("GET", ARTISTS) + sent)
        assert [(await wire.answer()).status for _ in range(3)] == [200, 200, status]
        assert await wire.rest() == b""


async def test_a_client_that_stops_sending_still_gets_its_answers(member: Client) -> None:
    for count in (1, 2, 20):
        async with connected(member.root) as wire:
            await wire.send(request("POST", ARTISTS, auth(member), JSON, body=SOUND) * count)
            wire.end()
            assert [(await wire.answer()).status for _ in range(count)] == [201] * count
            assert await wire.rest() == b""


async def test_a_client_that_breaks_off_costs_nothing(member: Client) -> None:
    whole = request("POST", ARTISTS, auth(member), JSON, "Transfer-Encoding: chunked", body=chunked(SOUND))
    before = (await member.get("artists")).json["artists"]["total"]
    for ending in ("end", "reset"):
        for cut in (1, 30, -15, -3):
            async with connected(member.root) as wire:
                await wire.send(whole[:cut])
                await asyncio.sleep(0.05)
                getattr(wire, ending)()
                assert await wire.rest() == b""
    assert (await member.get("artists")).json["artists"]["total"] == before


TOKENS = st.sampled_from(
    [
        *(b"GET", b"POST", b" ", b"HTTP/1.1", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b":", b",", b"/", b"%", b"?"),
        *(
            b"Host: localhost",
            b"Content-Length: ",
            b"Transfer-Encoding: ",
            b"chunked",
            b"0",
            b"5",
            b"-1",
            b"Content-Type: ",
        ),
        *(
            b"Content-Type: ",
            b"application/json",
            b"Authorization: Bearer x",
            b"Expect: 100-continue",
            b"Connection: ",
            b"close",
        ),
        *(b"Upgrade: websocket", b"/api/v1/albums", b"/api/v1/artists", b"{}", b"{", b'"', b"\xff", b"\xed\xa0\x80"),
    ]
)
NOISE = st.lists(TOKENS | st.binary(max_size=8), max_size=24).map(b"".join)
SHAPED = st.builds(
    lambda method, path, headers, body: method + b" " + path + b" HTTP/1.1\r\n" + headers + b"\r\n\r\n" + body,
    st.sampled_from([b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS"]),
    st.binary(max_size=8).map(lambda tail: b"/api/v1/artists" + tail.replace(b" ", b"")),
    st.lists(TOKENS, max_size=6).map(lambda parts: b"\r\n".join([b"Host: localhost", *parts])),
    st.binary(max_size=40),
)


@pytest.mark.slow
async def test_no_bytes_whatever_make_the_server_fail(member: Client, *, long: bool) -> None:
    received: list[bytes] = []

    @hypothesis.settings(max_examples=20_000 if long else 300)
    @hypothesis.given(st.one_of(NOISE, SHAPED, st.lists(SHAPED, max_size=3).map(b"".join)))
    def collect(raw: bytes) -> None:
        received.append(raw)

    collect()
    for raw in received:
        async with connected(member.root) as wire:
            await wire.send(raw)
            wire.end()
            answers = await wire.rest()
            assert b"HTTP/1.1 5" not in answers, raw
            assert b"HTTP/1.0 5" not in answers, raw
            assert b"aiohttp" not in answers, raw
    assert (await member.get("/healthz")).status == 200
