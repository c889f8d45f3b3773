"""Repeated reads are answered from memory, exactly as the dispatcher answers them."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest
from aiohttp.web_protocol import MAX_MSG_QUEUE_SIZE

from musicsvc.clock import MovableClock
from musicsvc.config import Limits, Settings
from musicsvc.server.request import first_steps
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.accounts import tokens
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token
from tests.support.bounds import Bounds
from tests.support.prometheus import scraped, total
from tests.support.raw_connection import Wire, connected, request
from tests.support.serving import Answer, Client, StartServer

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

ANSWERED = "musicsvc_immediate_answers_total"
TARGET = "/api/v1/genres"


def asking(client: Client, *headers: str, target: str = TARGET, method: str = "GET") -> bytes:
    return request(method, target, f"Authorization: Bearer {client.token}", *headers)


async def warm(client: Client, wire: Wire, raw: bytes) -> list[Answer]:
    """Send a request until its answer comes from memory. Return all answers."""
    before, answers = await immediate_answers(client), []
    async with asyncio.timeout(30):
        while await immediate_answers(client) == before:
            await wire.send(raw)
            answers.append(await wire.answer())
    return answers


async def immediate_answers(client: Client) -> float:
    return total(await scraped(client), ANSWERED)


@pytest.fixture
def client(anonymous: Client, world: dict[str, str]) -> Client:
    """Return a client with the token of an account, and a catalog."""
    return anonymous.holding(world["demo"])


@pytest.fixture
async def wire(client: Client) -> AsyncIterator[Wire]:
    async with connected(client.root) as opened:
        yield opened


def same(one: Answer, other: Answer) -> bool:
    """Return whether two answers are equal, in the order of their headers too, but for what each request changes."""
    changing = {"Date", "X-Request-Id"}
    heads = [[(k, v) for k, v in answer.headers.items() if k not in changing] for answer in (one, other)]
    assert heads[0] == heads[1]
    return one.status == other.status and one.body == other.body


HEADERS = ("", "Accept-Encoding: gzip", "If-None-Match: *", "Accept-Encoding: gzip;q=0, *", "X-Request-Id: a.b")


@pytest.mark.parametrize("target", [TARGET, "/api/v1/albums?perPage=3", "/healthz", f"{INSIGHTS}/export/formats"])
async def test_an_immediate_answer_equals_that_of_the_dispatcher(client: Client, wire: Wire, target: str) -> None:
    for header in HEADERS:
        raw = asking(client, *filter(None, [header]), target=target)
        await wire.send(raw)
        first = await wire.answer()
        second = (await warm(client, wire, raw))[-1]
        assert first.status in {200, 304}
        assert same(first, second)


async def test_each_answer_has_its_own_request_id_or_that_of_the_client(client: Client, wire: Wire) -> None:
    await warm(client, wire, asking(client))
    before = await immediate_answers(client)
    await wire.send(asking(client))
    own = (await wire.answer()).headers["X-Request-Id"]
    await wire.send(asking(client, "X-Request-Id: mine-7"))
    assert (await wire.answer()).headers["X-Request-Id"] == "mine-7" != own
    assert await immediate_answers(client) == before + 2


IN_TURN = """
import http.client, sys
address, target, token = sys.argv[1:]
connections = [http.client.HTTPConnection(address, timeout=10) for _ in range(8)]
for _ in range(100):
    for connection in connections:
        connection.request("GET", target, headers={"Authorization": f"Bearer {token}"})
    for connection in connections:
        connection.getresponse().read()
"""


async def test_fast_clients_are_answered_from_memory_after_their_first_requests(client: Client) -> None:
    address = client.root.partition("//")[2]
    line = [sys.executable, "-c", IN_TURN, address, TARGET, str(client.token)]
    process = await asyncio.create_subprocess_exec(*line)
    assert await process.wait() == 0
    assert await immediate_answers(client) > 700


async def test_pipelined_requests_are_answered_in_order(client: Client, wire: Wire) -> None:
    one, other = asking(client), asking(client, target="/api/v1/albums?perPage=2")
    bodies = [(await warm(client, wire, raw))[-1].body for raw in (one, other)]
    assert bodies[0] != bodies[1]
    await wire.send(one + other + one)
    assert [(await wire.answer()).body for _ in range(3)] == [bodies[0], bodies[1], bodies[0]]
    await wire.send(other + one[:20])
    assert (await wire.answer()).body == bodies[1]
    await wire.send(one[20:])
    assert (await wire.answer()).body == bodies[0]


async def test_only_bytes_that_begin_and_end_a_head_are_taken_for_one(client: Client, wire: Wire) -> None:
    """Also where they come after others: in a header, in a body, after the rest of a head."""
    raw, other = asking(client), asking(client, target="/api/v1/albums?perPage=2")
    bodies = [(await warm(client, wire, each))[-1].body for each in (raw, other)]
    before = await immediate_answers(client)
    await wire.send(other[:-2])
    await asyncio.sleep(0.1)
    await wire.send(raw)  # whose first line is no header
    assert (await wire.answer()).status == 400
    assert await wire.rest() == b""
    async with connected(client.root) as sending:
        await sending.send(asking(client, f"Content-Length: {len(raw)}", method="DELETE"))
        await asyncio.sleep(0.1)
        await sending.send(raw)
        assert (await sending.answer()).status == 405
    async with connected(client.root) as sending:
        await sending.send(raw + other[:-2])
        assert (await sending.answer()).body == bodies[0]
        await sending.send(b"\r\n")
        assert (await sending.answer()).body == bodies[1]
        assert await immediate_answers(client) == before
        for each, body in zip((raw, other, raw), (*bodies, bodies[0]), strict=True):
            await sending.send(each)
            assert (await sending.answer()).body == body
    assert await immediate_answers(client) == before + 2  # all but the first, which shows where a head begins


async def test_heads_are_known_again_after_a_request_with_a_body(client: Client, wire: Wire) -> None:
    raw = asking(client)
    await warm(client, wire, raw)
    before = await immediate_answers(client)
    body = b'{"name": "Anything"}'
    headers = f"Content-Length: {len(body)}", "Content-Type: application/json"
    await wire.send(asking(client, *headers, target="/api/v1/playlists", method="POST") + body)
    assert (await wire.answer()).status == 200
    for _ in range(3):
        await wire.send(raw)
        assert (await wire.answer()).status == 200
    assert await immediate_answers(client) == before + 2


@pytest.mark.parametrize(
    ("header", "immediate"),
    [
        ("X-Request-Id: {}", 1),
        ("x-request-id:{}", 1),
        ("X-REQUEST-ID: {}", 1),
        ("X-Request-Id:\t {}", 1),
        ("X-Request-Id: {} ", 1),
        ("X-Request-Id: a b", 1),
        ("X-Request-Id: \u00e4 b", 0),
        ("X-Request-Id: {}\r\nX-Request-Id: other", 0),
    ],
)
async def test_however_a_request_id_is_written_it_is_that_of_its_own_request(
    client: Client, wire: Wire, header: str, immediate: int
) -> None:
    await warm(client, wire, asking(client))
    found = []
    for number in range(3):
        before = await immediate_answers(client)
        await wire.send(asking(client, header.format(f"mine-{number}")))
        found.append((await wire.answer()).headers["X-Request-Id"])
        assert await immediate_answers(client) == before + immediate
    assert len(set(found)) == 3
    assert found == [f"mine-{number}" for number in range(3)] or " b" in header


async def test_after_many_immediate_answers_pipelined_requests_are_still_read(client: Client, wire: Wire) -> None:
    raw = asking(client)
    await warm(client, wire, raw)
    for _ in range(MAX_MSG_QUEUE_SIZE):  # if they were not consumed, the parser would stop after each request
        await wire.send(raw)
        assert (await wire.answer()).status == 200
    await wire.send(8 * raw)
    assert [(await wire.answer()).status for _ in range(8)] == [200] * 8


async def test_heads_that_ask_for_something_else_are_not_answered_from_memory(client: Client, wire: Wire) -> None:
    body = (await warm(client, wire, asking(client)))[-1].body
    before = await immediate_answers(client)
    await wire.send(asking(client, method="HEAD"))
    assert (await wire.answer(head=True)).body == b""
    await wire.send(asking(client, method="DELETE"))
    assert (await wire.answer()).status == 405
    await wire.send(asking(client).replace(b"Bearer msvc_", b"Bearer msvc-"))
    assert (await wire.answer()).status == 401
    await wire.send(asking(client, "Connection: close"))
    assert (await wire.answer()).body == body
    assert await wire.rest() == b""
    async with connected(client.root) as old:
        await old.send(asking(client, "Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert (await old.answer()).headers["Connection"] == "keep-alive"
    assert await immediate_answers(client) == before


async def test_a_revoked_token_is_refused_at_once(
    client: Client, wire: Wire, store: Store, clock: MovableClock
) -> None:
    await warm(client, wire, asking(client))
    digest = tokens.digest(str(client.token))
    store.write(lambda: Token.update(revoked_at=clock.now()).where(Token.digest == digest).execute()).result()
    await wire.send(asking(client))
    assert (await wire.answer()).status == 401


@pytest.mark.only_on("sqlite")  # on PostgreSQL, threads count
async def test_a_limit_holds_to_the_letter(start_server: StartServer, world: dict[str, str]) -> None:
    limits = Limits(local=True, token="7/minute")
    client = (await start_server(Settings(limits=limits))).holding(world["demo"])
    async with connected(client.root) as wire, connected(client.root) as other:
        found = []
        for number in range(9):
            on = (wire, other)[number % 2]
            await on.send(asking(client))
            answer = await on.answer()
            found.append((answer.status, answer.headers["X-RateLimit-Remaining"]))
    assert found == [*((200, str(left)) for left in range(6, -1, -1)), (429, "0"), (429, "0")]


async def test_each_is_logged_and_counted(client: Client, wire: Wire, store: Store) -> None:
    sent = len(await warm(client, wire, asking(client, "X-Request-Id: logged")))
    assert total(await scraped(client), "musicsvc_requests_total", route=TARGET, status="200") == sent
    entries = await logged(store, sent)
    assert len({(entry.route, entry.status, entry.size, entry.account_id, entry.token_id) for entry in entries}) == 1
    assert {entry.request_id for entry in entries} == {"logged"}


async def logged(store: Store, count: int) -> list[Entry]:
    """Wait until this number of reads is in the activity log, and return them."""
    with activity_log.build(store.url) as log:
        while not log.open_existing():  # noqa: ASYNC110 - another thread creates the file
            await asyncio.sleep(0.05)
        found: list[Entry] = []
        async with asyncio.timeout(30):
            while len(found) < count:
                await asyncio.sleep(0.05)
                found = [entry for entry in calls.replay(log) if entry.route == TARGET]
    return found


async def test_a_client_that_leaves_or_stops_sending_disturbs_nobody(client: Client, wire: Wire) -> None:
    raw = asking(client)
    body = (await warm(client, wire, raw))[-1].body
    async with connected(client.root) as leaving:
        await leaving.send(raw)
        leaving.reset()
    async with connected(client.root) as ending:
        await ending.send(raw)
        ending.end()
        assert (await ending.answer()).body == body
        assert await ending.rest() == b""
    await wire.send(raw)
    assert (await wire.answer()).body == body


async def test_a_fault_while_answering_is_left_to_the_dispatcher(
    client: Client, wire: Wire, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    body = (await warm(client, wire, asking(client)))[-1].body

    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(first_steps, "serialize", fail)
    await wire.send(asking(client))
    assert (await wire.answer()).body == body
    assert "unhandled exception while answering a request from memory" in caplog.text
    monkeypatch.undo()
    await wire.send(asking(client))
    assert (await wire.answer()).body == body


async def test_few_heads_are_kept_and_no_long_ones(
    start_server: StartServer, world: dict[str, str], bounds: Bounds
) -> None:
    bounds(known_heads=2)
    client = (await start_server()).holding(world["demo"])
    heads = [asking(client, f"X-Number: {number}") for number in range(3)]
    async with connected(client.root) as wire:
        for raw in heads:
            await warm(client, wire, raw)
        before = await immediate_answers(client)
        for raw in reversed(heads):  # the last two are known, and the first is then learned in place of another
            await wire.send(raw)
            await wire.answer()
        assert await immediate_answers(client) == before + 2
        for _ in range(3):
            await wire.send(asking(client, f"X-Long: {'x' * first_steps.LONGEST_HEAD}"))
            await wire.answer()
        assert await immediate_answers(client) == before + 2
