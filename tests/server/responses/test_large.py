"""Answers over 64 KiB: HEAD sends no body, and the ETag covers every byte."""

import random

import pytest
from aiohttp.test_utils import make_mocked_request

from musicsvc.server.responses.large import encode
from musicsvc.server.responses.responses import PIECE, Reply, build_response
from musicsvc.server.shapes.envelope import MIN_COMPRESSED, Download
from tests.support.raw_connection import Wire, connected, request
from tests.support.serving import Answer, Client

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

SUBSCRIPTIONS = "notifications/me/subscriptions"


async def describe(client: Client) -> str:
    """Create a list that is large even when compressed; return its path."""
    artist = (await client.post("artists", {"name": "Clara Schumann"})).json["artist"]["id"]
    for number in range(20):
        description = random.Random(number).randbytes(5000).hex()
        body = {"name": f"Song {number}", "duration": 1000, "artists": [artist], "description": description}
        assert (await client.post("tracks", body)).status == 201
    return f"/api/v1/artists/{artist}/tracks"


async def test_head_sends_no_body_however_large_the_answer(client: Client) -> None:
    targets = [await describe(client), "/api/v1/openapi.json", "/docs/swagger-ui-bundle.js"]
    bearer = f"Authorization: Bearer {client.token}"
    async with connected(client.root) as wire:
        for target in targets:
            for coding in ("identity", "gzip"):
                lines = (bearer, f"Accept-Encoding: {coding}")
                head, whole = await head_then_get(wire, target, *lines)
                assert whole.headers.get("Content-Encoding", "identity") == coding, target
                assert len(whole.body) == int(head.headers["Content-Length"])
                assert coding == "gzip" or len(whole.body) > PIECE
                unchanged = f"If-None-Match: {whole.headers['ETag']}"
                for answered in await head_then_get(wire, target, unchanged, *lines):
                    assert (answered.status, answered.body) == (304, b"")
        assert len((await head_then_get(wire, targets[0], bearer, "Accept-Encoding: gzip"))[1].body) > PIECE
        await wire.send(request("GET", "/healthz"))
        assert (await wire.answer()).json == {"status": "ok"}


async def head_then_get(wire: Wire, target: str, *lines: str) -> tuple[Answer, Answer]:
    """Return both answers from one connection; only the body differs."""
    await wire.send(request("HEAD", target, *lines) + request("GET", target, *lines))
    head, whole = await wire.answer(head=True), await wire.answer()
    passing = {"Date", "X-Request-Id"}
    assert head.status == whole.status
    assert {name: head.headers[name] for name in head.headers if name not in passing} == {
        name: whole.headers[name] for name in whole.headers if name not in passing
    }
    return head, whole


async def test_the_tag_of_a_large_answer_changes_with_its_last_value(client: Client) -> None:
    names = [f"n{number:063}" for number in range(700)]
    for start in range(0, 700, 100):
        chosen = [{"notif_id": name, "channels": {}} for name in names[start : start + 100]]
        assert (await client.put(SUBSCRIPTIONS, {"selections": chosen})).status == 200
    before = [await read(client, coding) for coding in ("identity", "gzip")]
    last = {"notif_id": names[-1], "channels": {"mobile": False}}
    assert (await client.put(SUBSCRIPTIONS, {"selections": [last]})).status == 200
    after = [await read(client, coding) for coding in ("identity", "gzip")]
    assert len(before[0].body) > PIECE
    assert after[0].body == before[0].body.removesuffix(b"true}}]}") + b"false}}]}"
    assert len({each.headers["ETag"] for each in (*before, *after)}) == 4
    for coding, first in zip(("identity", "gzip"), before, strict=True):
        again = await read(client, coding, first.headers["ETag"])
        assert (again.status, again.body) == (200, after[0].body)


async def read(client: Client, coding: str, known: str = "") -> Answer:
    return await client.get(SUBSCRIPTIONS, headers={"Accept-Encoding": coding, "If-None-Match": known})


@pytest.mark.parametrize("size", [1, MIN_COMPRESSED, PIECE, PIECE + 1])
async def test_the_tag_of_a_file_changes_with_each_of_its_bytes(size: int) -> None:
    found = set()
    for coding in ("identity", "gzip"):
        asked = make_mocked_request("HEAD", "/docs/page.css", headers={"Accept-Encoding": coding})
        for at in (None, 0, size // 2, size - 1):
            content = bytearray(size)
            if at is not None:
                content[at] = 1
            file = Download(bytes(content), "text/css", {"Cache-Control": "no-cache"})
            response = await build_response(asked, Reply(file, 200, caching="public, no-cache"), {}, "id")
            found.add(response.headers["ETag"])
    different = min(size, 3) + 1
    assert len(found) == different * (1 if size < MIN_COMPRESSED else 2)


def test_a_value_that_json_does_not_know_is_an_error() -> None:
    with pytest.raises(TypeError):
        encode({"value": object()})
