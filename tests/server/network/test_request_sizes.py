"""Limits on the size of requests: heads, paths, requests sent in advance, bodies."""

import asyncio
import json
from contextlib import AsyncExitStack, suppress

import pytest

from musicsvc.clock import Clock
from musicsvc.server.network.raw_responses import MAX_HEAD
from musicsvc.store.engine.store import Store
from tests.support.bounds import Bounds
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, check_sound
from tests.support.raw_connection import connected, request
from tests.support.serving import Client, StartServer, person

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

GET = request("GET", ALBUMS)


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
