"""Limits of answers: pages have at most 16 MiB, and unread answers share a budget."""

import asyncio
import re
import threading
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import orjson
import pytest

from musicsvc.clock import MovableClock
from musicsvc.config import Settings
from musicsvc.errors import Overloaded
from musicsvc.server.responses import large as large_answers
from musicsvc.server.responses.large import AnswerMemory, Reservation
from musicsvc.server.shapes.envelope import Encoded
from musicsvc.store.engine.store import Store
from tests.paging import world as worlds
from tests.support import large_albums
from tests.support.bounds import Bounds
from tests.support.query_count import queries
from tests.support.raw_connection import not_reading, request
from tests.support.serving import Client, StartServer, person

MEBIBYTE = 1 << 20
ALBUM = 80 * 60_080  # bytes of an album with 80 tracks
PATIENCE = 30.0
ENOUGH = 20  # albums of the largest size that fit into a page of 16 MiB
NESTING = [
    "albums",
    "albums?perPage=50",
    "albums/1?with=genres,tags",
    "artists/6/albums",
    "artists/6/tracks",
    "playlists/1/tracks?page=2&perPage=30",
    "collections/2",
    "producer-intelligence/insights/artists/6/collaborations",
]


@pytest.mark.slow
async def test_a_page_that_would_be_larger_than_16_mib_is_refused(client: Client, store: Store) -> None:
    large_albums.fill(store, albums=ENOUGH + 4, tracks=large_albums.NEARLY_FULL)
    for path in ("albums", "artists/1/albums"):
        page = await client.get(f"{path}?perPage={ENOUGH}")
        assert page.status == 200
        assert 13 * MEBIBYTE < len(page.body) <= 16 * MEBIBYTE
        held = page.json["albums" if path == "albums" else "pagination"]
        assert [len(album["tracks"]) for album in held["data"]] == [large_albums.NEARLY_FULL] * ENOUGH
        assert (held["from"], held["to"], held["total"]) == (1, ENOUGH, ENOUGH + 4)
        for name in ("perPage", "per_page"):
            answer = await client.get(f"{path}?{name}={ENOUGH + 4}")
            assert answer.status == 422
            assert answer.json["errors"] == {name: "The page would be larger than 16 MiB. Ask for fewer rows per page."}
        # Nothing nested: pages of the public tier have any size.
        assert (await client.holding(None).get(f"{path}?perPage={ENOUGH + 4}")).status == 200


@pytest.mark.slow
async def test_an_album_beyond_the_bound_of_before_there_was_one_is_read_by_itself(
    client: Client, store: Store
) -> None:
    large_albums.fill(store, albums=2, tracks=290)
    album = await client.get("albums/2")
    assert album.status == 200
    assert len(album.body) > 16 * MEBIBYTE
    alone = await client.get("albums?perPage=1")
    assert (alone.status, alone.json["albums"]["data"]) == (200, [album.json["album"]])
    for path, name in (("albums", "per_page"), ("albums?perPage=2", "perPage"), ("artists/1/albums", "perPage")):
        answer = await client.get(path)
        assert (answer.status, list(answer.json["errors"])) == (422, [name])


async def test_a_page_of_tracks_that_would_be_too_large_is_refused(
    client: Client, store: Store, bounds: Bounds
) -> None:
    bounds(max_page=2 * MEBIBYTE)
    large_albums.fill(store, albums=1, tracks=40)
    await client.post("playlists", {"name": "All"})
    await client.post("playlists/1/tracks/add", {"ids": [*range(1, 41), 1, 1, 1]})
    for path in ("artists/1/tracks", "playlists/1/tracks"):
        assert (await client.get(path)).status == 200
        assert (await client.get(f"{path}?per_page=34")).status == 200
        answer = await client.get(f"{path}?per_page=35")
        assert (answer.status, list(answer.json["errors"])) == (422, ["per_page"])
    assert (await client.get("playlists/1/tracks?page=21&perPage=2")).json["pagination"]["data"][1]["id"] == 1
    rows = (await client.get("artists/1/tracks?page=2&perPage=9")).json["pagination"]["data"]
    size = sum(len(orjson.dumps(row)) + len(",") for row in rows)
    for room, status in ((size, 200), (size - 1, 422)):
        bounds(max_page=room)
        assert (await client.get(f"artists/1/tracks?page=2&perPage=9&uncached={room}")).status == status


async def test_a_page_is_refused_as_soon_as_it_is_too_large(client: Client, store: Store, bounds: Bounds) -> None:
    bounds(max_page=2 * MEBIBYTE, albums_at_once=1)
    large_albums.fill(store, albums=ENOUGH, tracks=large_albums.NEARLY_FULL)
    with queries(store) as asked:
        assert (await client.get("albums?perPage=50")).status == 422
    loads = [event.sql for event in asked if 'FROM "track"' in event.sql]
    assert len(loads) == 3, "each album takes 0.75 MiB"


@pytest.mark.slow
async def test_an_answer_built_in_pieces_is_the_same(
    start_server: StartServer, store: Store, clock: MovableClock, bounds: Bounds
) -> None:
    anonymous = await start_server(Settings(server={"answer_cache": 0}))
    world = store.write(partial(worlds.build, anonymous.root, clock.now())).result()
    client = anonymous.holding(world.tokens["ann"])
    whole = {path: await client.get(path) for path in NESTING}
    bounds(answer_group=3, albums_at_once=1)
    for path in NESTING:
        answer = await client.get(path)
        assert (answer.status, answer.body) == (200, whole[path].body), path
        assert answer.headers["ETag"] == whole[path].headers["ETag"]
        head = await client("HEAD", path, headers={"Accept-Encoding": "identity"})
        assert (head.status, head.headers["Content-Length"]) == (200, str(len(answer.body)))
        again = await client.get(path, headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status == 304
    made = await client.post("collections", {"name": "New", "track_ids": [2, 1, 2]})
    assert [track["id"] for track in made.json["collection"]["tracks"]] == [2, 1, 2]
    empty = await client.post("collections", {"name": "Empty", "track_ids": []})
    assert (empty.status, empty.json["collection"]["tracks"]) == (201, [])


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # after the answer was read
async def test_json_is_made_off_the_event_loop(
    anonymous: Client, store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = store.write(partial(worlds.build, anonymous.root, clock.now())).result()
    client = anonymous.holding(world.tokens["ann"])
    threads: dict[str, set[str]] = {}
    encode = large_answers.encode

    def noted(value: Any, query: str = "") -> Encoded:
        threads.setdefault("encode", set()).add(threading.current_thread().name)
        return encode(value, query)

    monkeypatch.setattr(large_answers, "encode", noted)
    for path in [*NESTING, "openapi.json", "users/me"]:
        assert (await client.get(path)).status == 200
    assert threads["encode"]
    assert not [name for name in threads["encode"] if not name.startswith(("store-read", "asyncio_"))]


async def ask(stack: AsyncExitStack, client: Client, path: str, token: str) -> AsyncExitStack:
    """Request the path on a connection that is not read; closing the returned object closes it."""
    closing = await stack.enter_async_context(AsyncExitStack())
    raw = request("GET", f"/api/v1/{path}", f"Authorization: Bearer {token}")
    await closing.enter_async_context(not_reading(client.root, raw))
    return closing


async def refused(client: Client, path: str) -> bool:
    """Return whether the answer is 503."""
    answer = await client.get(path)
    if answer.status == 503:
        assert answer.headers["Retry-After"] == "1"
        assert "database" not in answer.json["message"]
    return answer.status == 503


async def holding(client: Client, count: int) -> None:
    """Wait until this many albums are held for clients that do not read them."""
    deadline = time.monotonic() + PATIENCE
    while True:
        figures = (await client.get("/metrics")).body.decode()
        held = float(re.findall(r"^musicsvc_answer_memory_bytes (\S+)", figures, re.MULTILINE)[0])
        if round(held / ALBUM) == count:
            return
        assert time.monotonic() < deadline, f"{held / MEBIBYTE} MiB are held"
        await asyncio.sleep(0.02)


@pytest.mark.only_on("sqlite")  # of memory
async def test_answers_that_nobody_reads_share_a_budget(
    store: Store, clock: MovableClock, start_server: StartServer
) -> None:
    """The budget is 30 MiB, 7.5 for a token; an album has 4.6 MiB, less than half of it in the system's buffers."""
    settings = Settings(server={"answer_memory": "30MiB"})
    client = await start_server(settings)
    async with AsyncExitStack() as stack:
        tokens = [person(store, clock, f"p{number}@label.test")[1] for number in range(6)]
        large_albums.fill(store, albums=3, tracks=80)  # 4.6 MiB each
        ann, ben = client.holding(tokens[0]), client.holding(tokens[1])
        reader = await ask(stack, client, "albums/1", tokens[0])
        await holding(client, 1)
        assert await refused(ann, "albums/2")
        # Small answers are sent, and large ones of other tokens too.
        for path in ("users/me", "tracks/1", "artists"):
            assert (await ann.get(path)).status == 200
        assert (await ben.get("albums/2")).status == 200
        # An answer larger than a share is always refused.
        assert await refused(ben, "artists/1/albums")
        assert "7.5 MiB are allowed per client" in (await ben.get("artists/1/albums")).json["message"]
        # Six tokens with 4.6 MiB each use up the whole budget.
        for token in tokens[1:]:
            await ask(stack, client, "albums/3", token)
        await holding(client, 6)
        last = client.holding(person(store, clock, "late@label.test")[1])
        assert await refused(last, "albums/1")
        assert (await last.get("users/me")).status == 200
        await reader.aclose()
        await holding(client, 5)
        assert not await refused(last, "albums/1")


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
async def test_a_large_answer_is_built_past_the_caches_of_the_database(
    start_server: StartServer, store: Store, clock: MovableClock
) -> None:
    anonymous = await start_server(Settings(server={"answer_cache": 0}))
    world = store.write(partial(worlds.build, anonymous.root, clock.now())).result()
    client = anonymous.holding(world.tokens["ann"])
    paths = ["albums", "albums?perPage=20", "albums?perPage=21", "artists/6/albums?per_page=30", "artists/6/tracks"]

    async def uncached() -> list[str]:
        found = []
        for path in paths:
            for holder in (client, anonymous):
                with queries(store) as asked:
                    assert (await holder.get(path)).status == 200
                if any("PRAGMA cache_size = -1000" in event.sql for event in asked):
                    found.append(path if holder is client else f"{path} without a token")
        return found

    # Pages of albums that are larger than the default are expected to be large.
    assert await uncached() == paths[2:4]


def test_an_answer_is_refused_before_it_is_made_and_never_after_a_write() -> None:
    memory = AnswerMemory(8 * MEBIBYTE)
    answer, room = {"text": "x" * 3 * MEBIBYTE}, answering(memory, "192.0.2.1", 1)
    builder = large_answers.AnswerBuilder(room, "perPage")
    assert builder.finish(answer, writes=True, drawn=False).size > 3 * MEBIBYTE
    with pytest.raises(Overloaded):
        builder.finish(answer, writes=False, drawn=False)
    room.resize(large_answers.EXPECTED)
    assert memory.total == 2 * MEBIBYTE
    with pytest.raises(Overloaded):
        answering(memory, "192.0.2.2", 1).resize(large_answers.EXPECTED)


def answering(memory: AnswerMemory, address: str, token: int | None = None) -> Reservation:
    """Return the reservation of the answer to this address and token."""
    return Reservation(memory, address, None if token is None else f"token {token}")


def test_who_has_no_token_holds_half_of_the_budget_at_most_and_leaves_a_share_to_who_has_one() -> None:
    memory = AnswerMemory(8 * MEBIBYTE)
    held = [answering(memory, f"192.0.2.{number}") for number in range(3)]
    for each in held[:2]:
        each.resize(2 * MEBIBYTE)
    with pytest.raises(Overloaded, match="Too many large responses"):
        held[2].resize(100_000)
    held[2].resize(64 * 1024)  # never refused
    tokens = [answering(memory, "192.0.2.1", token) for token in (1, 2)]
    for each in tokens:
        each.resize(2 * MEBIBYTE)
    assert memory.total == 8 * MEBIBYTE
    held[0].resize(MEBIBYTE)
    held[2].resize(MEBIBYTE)
    tokens[0].release()
    with pytest.raises(Overloaded, match="The client has disconnected"):
        tokens[0].resize(100_000)
    for each in (*held, *tokens, *tokens):
        each.release()
    assert memory.total == 0


def test_addresses_of_one_ipv6_network_are_one_client_and_tokens_of_one_address_are_not() -> None:
    memory = AnswerMemory(8 * MEBIBYTE)
    answering(memory, "2001:db8::1").resize(2 * MEBIBYTE)
    with pytest.raises(Overloaded, match=r"use all of the 2\.0 MiB allowed per client"):
        answering(memory, "2001:db8::2").resize(100_000)
    answering(memory, "2001:db8:0:1::1").resize(100_000)
    for token in (1, 2):
        answering(memory, "2001:db8::1", token).resize(2 * MEBIBYTE)
    with pytest.raises(Overloaded, match="Responses you have not read yet"):
        answering(memory, "198.51.100.1", 2).resize(100_000)
