"""Limits of large bodies, in values and in chunks."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.network.protocol import MAX_FRAMING
from musicsvc.server.request.bodies import MAX_CHUNKS
from musicsvc.server.schemas.pages.form import MOST_ESCAPES
from musicsvc.server.schemas.reading import MAX_VALUES, SAMPLE, first_values
from musicsvc.store.engine.store import Store
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, check_sound
from tests.support.raw_connection import chunked, connected, request
from tests.support.serving import Client, person
from tests.support.threaded_server import LOOP_SECONDS, TRIES, Connection, threaded_server

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

GET = request("GET", ALBUMS)
TOO_MANY = f"Must have at most {MAX_VALUES:,} values in total."
BYTES, PAUSE_SECONDS = 3000, 0.0001
CHUNKED = "Transfer-Encoding: chunked"


def with_values(count: int, **fields: Any) -> dict[str, Any]:
    """Return a body of exactly this many values: its fields, an array, and the integers in it."""
    return {**fields, "junk": [0] * (count - len(fields) - 1)}


async def test_a_body_has_a_bound_on_its_values(client: Client) -> None:
    name = "Barbara, Strozzi [{\\,"
    assert (await client.post("artists", with_values(MAX_VALUES, name=name))).status == 201
    answer = await client.post("artists", with_values(MAX_VALUES + 1, name=name))
    assert (answer.status, answer.json["errors"]) == (422, {"body": TOO_MANY})


async def test_signs_within_strings_are_no_values(client: Client) -> None:
    for text in (",[{" * 300_000, '\\"' * 10 + ',"[' * 150_000, "\\" * 200_000 + "," * 60_000):
        assert (await client.post("artists", {"junk": text, "name": "Strozzi"})).status == 201


def test_each_member_may_have_two_strings() -> None:
    for members in (MAX_VALUES, MAX_VALUES + 1):
        text = json.dumps({str(number): ",[{" for number in range(members)})
        assert (first_values(text) is not None) == (members > MAX_VALUES)


@pytest.mark.parametrize("surplus", [0, 1, 2])
def test_an_oversized_text_is_cut_after_exactly_so_many_values(surplus: int) -> None:
    more = MAX_VALUES + surplus
    assert json.loads(first_values(json.dumps([0] * (more + 1))) or "") == [0] * SAMPLE
    members = {str(number): "],{[" for number in range(more + 1)}
    assert json.loads(first_values(json.dumps(members)) or "") == dict(list(members.items())[:SAMPLE])
    nested = [[0, {}, 0]] * more  # five values each, after two
    assert json.loads(first_values(json.dumps({"a": nested})) or "") == {"a": [*nested[: SAMPLE // 5 - 1], [0, {}]]}
    assert first_values("[" * (more + 1)) == "[" * (SAMPLE + 1)  # too deep to be parsed


def outside(text: str) -> Iterator[tuple[int, str]]:
    """Yield the characters outside of strings, each with its place."""
    inside = escaped = False
    for place, char in enumerate(text):
        if escaped:
            escaped = False
        elif inside and char == "\\":
            escaped = True
        elif char == '"':
            inside = not inside
        elif not inside:
            yield place, char


def plain_first_values(text: str, most: int, sample: int) -> str | None:
    """Return what `first_values` returns, from one look at each character."""
    begun, values, cut = "", 0, None
    for place, char in outside(text):
        if char in "]}" and not begun:
            return None
        if char in "]}":
            begun = begun[:-1]
        if char == "," and values >= sample and cut is None:
            cut = text[:place] + begun[::-1].translate(str.maketrans("[{", "]}"))
        begun += char if char in "[{" else ""
        if len(begun) > sample and cut is None:
            cut = text[: place + 1]
        values += char in ",[{"
        if values > most:
            return text[: place + 1] if cut is None else cut
    return None


PIECES = [
    '"',
    '"',
    "\\",
    '\\"',
    "[",
    "{",
    "]",
    "}",
    ",",
    ",",
    ":",
    "0",
    " ",
    "\n",
    "é",
    "🎵",
    '"a"',
    '"a":',
    "[]",
    '{"a":0}',
]


@pytest.mark.slow
def test_texts_are_counted_and_cut_as_a_plain_count_does() -> None:
    random = Random(36)
    found = 0
    for _ in range(10_000):
        pieces = random.sample(PIECES, random.randint(1, 6))
        text = "".join(random.choices(pieces, k=random.randint(0, 60)))
        if random.random() < 0.5:  # JSON
            text = json.dumps({"a": [text] * random.randint(0, 9), "b": [{text: text}, [[]] * random.randint(0, 9)]})
        most = random.randint(1, 30)
        sample = random.randint(1, most)
        first = first_values(text, most, sample)
        assert first == plain_first_values(text, most, sample), (text, most, sample)
        found += first is not None
    assert 2_000 < found < 8_000  # both kinds were tried


@pytest.mark.parametrize(
    ("path", "body", "errors"),
    [
        ("messaging/messages", {"conversation_id": [1] * 500_000}, {"conversation_id": "Must be an integer."}),
        ("collections", {"name": 1, "track_ids": [1] * 60_000}, {"name": "Must be a string."}),
        ("collections", {"track_ids": [1] * 60_000, "name": ""}, {"track_ids": "Must have at most 500 entries."}),
        ("plays", {"plays": [{"track_id": 1, "a": {}}] * 20_000}, {"plays": "Must have at most 1000 entries."}),
        ("artists", {f"key{number}": 0 for number in range(60_000)}, {}),
    ],
    ids=["a scalar", "before", "the array", "objects", "members"],
)
async def test_beyond_the_bound_the_first_values_are_still_checked(
    client: Client, path: str, body: Any, errors: dict[str, str]
) -> None:
    """Later fields are not examined, so they are not reported as missing."""
    data = json.dumps(body, separators=(",", ":")).encode()
    answer = await client.post(path, data=data, headers={"Content-Type": "application/json"})
    found = answer.json["errors"]
    assert (answer.status, found.pop("body")) == (422, TOO_MANY)
    assert errors.items() <= found.items()
    assert "This field is required." not in found.values()


async def test_malformed_text_beyond_the_bound_is_400(client: Client) -> None:
    zeros = b"0," * MAX_VALUES
    for text in (
        b'{"a":1,"a":1,"b":[%s0]}',
        b'{"a":[1,,%s0]}',
        b'{"a":NaN,"b":[%s0]}',
        b"[" * 60_000 + b'%s"a',
        b'"\xff"%s',
    ):
        answer = await client.post("artists", data=text % zeros, headers={"Content-Type": "application/json"})
        assert answer.status == 400, text[:20]


async def test_the_errors_of_an_answer_have_a_bound(client: Client) -> None:
    play = {"track_id": 0, "played_at": 0, "listener": 0, "duration_ms": -1, "client_id": 0}
    few = (await client.post("plays", {"plays": [play] * 250})).json["errors"]
    assert len(few) == 1000
    many = (await client.post("plays", {"plays": [play] * 251})).json["errors"]
    assert many.pop("body") == "Has 1,004 errors; the first 1,000 are listed."
    assert many == few


async def test_unknown_channels_are_named_but_not_all_of_them_and_not_at_length(client: Client) -> None:
    long, path = "k" * 101, "notifications/me/subscriptions"
    channels = {long: True, **{f"c{number}": True for number in range(5000)}, "email": 1}
    answer = await client.put(path, {"selections": [{"notif_id": "a", "channels": channels}]})
    place = "selections.0.channels"
    unknown = [f"{'k' * 100}…", *(f"c{number}" for number in range(9))]
    errors = dict.fromkeys((f"{place}.{name}" for name in unknown), "This key is unknown.")
    assert answer.json["errors"] == errors | {f"{place}.email": "Must be true or false."}


async def test_a_form_has_a_bound_on_its_escaped_bytes(anonymous: Client) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": anonymous.root}
    for surplus, status in ((0, 403), (1, 413)):  # 403: it has no token of a form
        body = b"email=" + b"%41" * (MOST_ESCAPES + surplus)
        answer = await anonymous.post("/sign-in", data=body, headers=headers)
        assert answer.status == status


async def test_a_body_may_come_in_so_many_chunks(client: Client) -> None:
    head = (f"Authorization: Bearer {client.token}", JSON, CHUNKED)
    text = json.dumps({"name": "Strozzi", "junk": "x" * MAX_CHUNKS}).encode()
    pieces = [text[at : at + 1] for at in range(MAX_CHUNKS - 1)]
    for last, status in (([text[MAX_CHUNKS - 1 :]], 201), ([text[MAX_CHUNKS - 1 : -1], text[-1:]], 413)):
        async with connected(client.root) as wire:
            await wire.send(request("POST", ARTISTS, *head, body=chunked(*pieces, *last)))
            answer = await wire.answer()
            check_sound(answer)
            assert answer.status == status


async def test_chunks_that_nobody_reads_end_the_connection(anonymous: Client) -> None:
    async with connected(anonymous.root) as wire:
        await wire.send(request("POST", ARTISTS, JSON, CHUNKED, body=b"1\r\n{\r\n"))
        answer = await wire.answer()
        assert (answer.status, answer.headers["Connection"]) == (401, "close")
        assert await wire.rest() == b""
    async with connected(anonymous.root) as wire:  # all of them have arrived, so there is nothing to read
        await wire.send(request("POST", ARTISTS, JSON, CHUNKED, body=chunked(b"{}")) + GET)
        assert [(await wire.answer()).status for _ in range(2)] == [401, 200]


async def test_framing_that_outweighs_its_content_is_400(client: Client) -> None:
    head = (f"Authorization: Bearer {client.token}", JSON, CHUNKED)
    for extension, status in ((2**19, 201), (2**22, 400)):
        async with connected(client.root) as wire:
            body = b"c;%s\r\n%s\r\n0\r\n\r\n" % (b"e" * extension, b'{"name":"x"}')
            sending = asyncio.create_task(wire.send(request("POST", ARTISTS, *head, body=body)))
            answer = await wire.answer()
            assert answer.status == status
            sending.cancel()
    assert (await client.get("artists")).json["artists"]["total"] == 1


async def test_framing_that_outweighs_its_content_ends_the_connection_even_if_the_body_is_complete(
    client: Client,
) -> None:
    head = request("POST", ARTISTS, f"Authorization: Bearer {client.token}", JSON, CHUNKED)
    async with connected(client.root) as wire:
        for raw in (head, b"c;" + b"e" * (MAX_FRAMING - 99)):
            await wire.send(raw)
            await asyncio.sleep(0.2)  # so that the end of the body is what goes beyond the limit
        await wire.send(b"%s\r\n%s\r\n0\r\n\r\n" % (b"e" * 199, b'{"name":"x"}'))
        answer = await wire.answer()
        check_sound(answer)
        assert (answer.status, answer.headers.get("Connection")) == (400, "close")
        await wire.send(GET)
        assert await wire.rest() == b""


def in_chunks(text: bytes) -> list[bytes]:
    return [chunked(*(text[at : at + 1] for at in range(len(text))))]


def in_bytes(text: bytes) -> list[bytes]:
    return [text[at : at + 1] for at in range(BYTES)]


@pytest.mark.slow
@pytest.mark.parametrize(("way", "status"), [(in_chunks, 413), (in_bytes, 400)])
def test_no_way_of_sending_a_body_costs_more_than_it_may(
    store: Store, clock: MovableClock, way: Callable[[bytes], list[bytes]], status: int
) -> None:
    _, token = person(store, clock, "ann@label.test")
    pieces = way(b'{"name":"%s"}' % (b"x" * 200_000))
    framing = f"Content-Length: {BYTES}" if way is in_bytes else CHUNKED
    head = request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, framing)
    with threaded_server(store, clock) as server:
        for _ in range(TRIES):
            with closing(Connection(server.port, server.thread)) as connection:
                cost = connection.cost(head, *pieces, pause=PAUSE_SECONDS if way is in_bytes else 0)
            assert cost.status == status
            if cost.loop <= LOOP_SECONDS:
                return
    pytest.fail(f"{cost}")
