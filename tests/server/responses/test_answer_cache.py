"""The cache of answers: never stale, equal to what the store has, for the right caller, in bounded memory."""

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.config import Settings
from musicsvc.server.freshness import Freshness, Source, Stamp
from musicsvc.server.responses.answer_cache import LARGE, AnswerCache, Fragment, Slot
from musicsvc.server.responses.large import encode
from musicsvc.server.routes.route import NO_STORE, SLOW, V1, Cost, Family, Route, Router
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.shapes.envelope import Encoded
from musicsvc.store.engine.store import Store
from tests.paging import world as worlds
from tests.paging.lists import LISTS
from tests.paging.world import World
from tests.support.memory import traced
from tests.support.prometheus import scraped, total
from tests.support.serving import Answer, Client, StartServer

CALLERS = ("ann", "ben", "cleo", None)
HITS = "musicsvc_answer_cache_hits_total"


def paths(world: World) -> set[str]:
    """Return a path of every read that can be cached."""
    lists = {view.path for of_world in LISTS.values() for view in of_world(world)}
    rows = (("albums", world.albums), ("artists", world.artists), ("tracks", world.tracks))
    owned = (("playlists", world.playlists), ("collections", world.collections))
    single = {f"{noun}/{row['id']}" for noun, some in (*rows, *owned) for row in some[:6]}
    fingerprint = f"tracks/{world.tracks[0]['id']}/fingerprint/status"
    album = f"albums/{world.albums[0]['id']}?with=genres,tags"
    others = {
        "access-requests/me",
        "changes",
        "users/me",
        "users/search?query=fan",
        "search?q=track%201",
        "search?q=mix",
        "notifications/me/subscriptions",
        fingerprint,
        album,
    }
    return lists | single | others | {f"{path}?perPage=2&page=2" for path in lists}


def shown(answer: Answer) -> tuple[int, bytes, Mapping[str, str]]:
    """Return an answer without what differs from request to request."""
    left_out = {"Date", "X-Request-Id"}
    return answer.status, answer.body, {k: v for k, v in answer.headers.items() if k.title() not in left_out}


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # test_paging.py reads the same on both; below, PostgreSQL tells the cache of changes
async def test_every_read_has_the_same_answer_with_and_without_the_cache(
    start_server: StartServer, store: Store, clock: MovableClock
) -> None:
    url = "https://music.example.test"
    cached = await start_server(Settings(server={"public_url": url, "local_http": True}))
    plain = await start_server(Settings(server={"public_url": url, "local_http": True, "answer_cache": 0}))
    world = store.write(partial(worlds.build, url, clock.now())).result()
    router, asked, hits = Router(ROUTES), set(), 0
    for path in sorted(paths(world)):
        asked.add(router.match("GET", f"{V1}/{path.partition('?')[0]}")[0].path)
        for _ in range(3):
            for name in CALLERS:
                token = None if name is None else world.tokens[name]
                one, other = [await client.holding(token).get(path) for client in (cached, plain)]
                assert shown(one) == shown(other), (path, name)
                hits += one.status == 200
    # Lists, but whether a token or an invitation has expired depends on the time; received listens are shown at once.
    never_kept = {f"{V1}/access-tokens", f"{V1}/playlists/invitations", f"{V1}/users/me/pending-listens"}
    assert asked - never_kept == {route.path for route in ROUTES if route.cacheable}
    # The second round comes from the cache, and what token holders share in the first; the third without a task.
    figures = await scraped(cached)
    assert hits * 2 / 3 < total(figures, HITS) < hits
    assert hits / 3 < total(figures, "musicsvc_immediate_answers_total") < hits * 2 / 3
    assert total(await scraped(plain), HITS) == 0


async def test_conditional_and_compressed_requests_are_answered_from_the_cache(client: Client) -> None:
    await ready(client)
    hits = total(await scraped(client), HITS)
    first = await client.get("genres?perPage=100", headers={"Accept-Encoding": "identity"})
    tag = first.headers["ETag"]
    again = await client.get("genres?perPage=100", headers={"If-None-Match": tag, "Accept-Encoding": "identity"})
    assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
    head = await client("HEAD", "genres?perPage=100", headers={"Accept-Encoding": "identity"})
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", first.headers["Content-Length"])
    assert total(await scraped(client), HITS) == hits + 2


@pytest.mark.only_on("sqlite")
async def test_nothing_cached_is_shown_once_the_database_was_moved(client: Client, store: Store) -> None:
    assert (await client.get("genres")).status == 200
    file = store.url.removeprefix("sqlite:///")
    os.rename(file, f"{file}.away")  # noqa: PTH104 - pathlib would do nothing else here
    await answered(client, "genres", 503)
    os.rename(f"{file}.away", file)  # noqa: PTH104 - as above
    await answered(client, "genres", 200)


async def ready(client: Client) -> None:
    """Wait until the server caches, which takes a moment on PostgreSQL."""
    before = total(await scraped(client), HITS)
    async with asyncio.timeout(30):
        while total(await scraped(client), HITS) == before:
            await client.get("genres?ready")


async def answered(client: Client, path: str, status: int) -> None:
    """Wait until a read has this status."""
    async with asyncio.timeout(30):
        while (await client.get(path)).status != status:  # noqa: ASYNC110 - as asked
            await asyncio.sleep(0.05)


def encoded(size: int, digit: str = "1") -> Encoded:
    return Encoded([digit.encode() * size])


class Moments(Freshness):
    """Changes that the test makes."""

    def __init__(self) -> None:
        self.number = 1
        self.off = False
        self.changed: dict[str, int] = {}

    def now(self) -> Stamp | None:
        return None if self.off else Stamp(self.number, 0.0)

    def change(self, table: str) -> None:
        self.number += 1
        self.changed[table] = self.number

    def holds(self, source: Source, *, counted: bool = True) -> bool:  # noqa: ARG002 - no counters here
        return all(self.changed.get(table, 0) <= source.stamp.number for table in source.tables)


def opened(cache: AnswerCache, target: str, *tables: str) -> Slot:
    """Return a slot for a response that was read from these tables."""
    slot = cache.find(target)
    assert isinstance(slot, Slot)
    slot._tables = frozenset(tables)
    return slot


def fill(cache: AnswerCache, target: str, body: Encoded, *tables: str) -> Any:
    return opened(cache, target, *tables).fill(body)


def cached(cache: AnswerCache, *targets: str) -> list[bool]:
    return [not isinstance(cache.find(target), Slot) for target in targets]


def test_memory_is_bounded_and_the_answer_unused_for_longest_goes_first() -> None:
    cache = AnswerCache(20_000, Moments())  # half of it for the rows of pages
    for target in "abcd":
        fill(cache, target, encoded(1000))  # too short to compress: 1000 bytes and the overhead
    assert cache.size == 4 * 2281
    assert cache.find("a")
    fill(cache, "e", encoded(1000))
    assert cache.size <= 10_000
    assert cached(cache, *"abcde") == [True, False, True, True, True]


def test_counted_memory_covers_what_answers_take() -> None:
    cache = AnswerCache(20_000_000, Moments())
    with traced() as taken:
        for number in range(1000):
            fill(cache, f"/albums/{number}", encode({"name": "n" * number}), "album", "artist", "track", "image", "tag")
        assert 0.7 * cache.size < taken() <= cache.size


def test_answers_and_the_rows_of_pages_have_half_of_the_room_each() -> None:
    cache = AnswerCache(100_000, Moments())
    source = Source(Stamp(1, 0.0), frozenset())
    for number in range(40):
        fill(cache, f"{number}", encoded(1300))
        cache.fragments.add("kind", {number: Fragment(b"1" * 1500, source)})
    assert 45_000 < cache.size <= 50_000
    assert 45_000 < cache.fragments.size <= 50_000
    assert cached(cache, "0", "39") == [False, True]


def test_the_memory_of_long_targets_counts() -> None:
    cache = AnswerCache(200_000, Moments())
    for number in range(20):
        fill(cache, f"{number}{'x' * 30_000}", encoded(10))
    assert 90_000 < cache.size <= 100_000
    assert cached(cache, *(f"{number}{'x' * 30_000}" for number in (16, 17, 19))) == [False, True, True]


def test_a_response_goes_with_a_change_of_its_tables_and_no_other() -> None:
    moments = Moments()
    cache = AnswerCache(10_000, moments)
    fill(cache, "tracks", encoded(10), "track", "artist")
    fill(cache, "tags", encoded(10), "tag")
    fill(cache, "none", encoded(10))
    size = cache.size
    moments.change("artist")
    assert cached(cache, "tracks", "tags", "none") == [False, True, True]
    assert cache.size < size
    fill(cache, "tracks", encoded(10), "track", "artist")
    assert cached(cache, "tracks") == [True]
    assert cache.size == size


def test_an_answer_read_before_a_commit_is_not_shown_after_it() -> None:
    moments = Moments()
    cache = AnswerCache(10_000, moments)
    slow, unrelated = opened(cache, "slow", "track"), opened(cache, "unrelated", "tag")
    moments.change("track")
    fill(cache, "after", encoded(10), "track")
    slow.fill(encoded(10))
    unrelated.fill(encoded(10))
    assert cached(cache, "slow", "unrelated", "after") == [False, True, True]


def test_an_answer_whose_tables_are_unknown_is_not_kept() -> None:
    cache = AnswerCache(10_000, Moments())
    slot = cache.find("a")
    assert isinstance(slot, Slot)
    slot.fill(encoded(10))
    assert cached(cache, "a") == [False]


@pytest.mark.parametrize("kept", [LARGE, LARGE + 1])
def test_large_answers_are_not_kept(kept: int) -> None:
    cache = AnswerCache(5 * LARGE, Moments())
    body = encoded(kept)
    assert (fill(cache, "a", body) is body) == (kept > LARGE)
    assert bool(cache.size) == (kept <= LARGE)


def test_nothing_is_cached_without_room_or_while_changes_are_unknown() -> None:
    moments = Moments()
    assert AnswerCache(0, moments).find("a") is None
    cache = AnswerCache(10_000, moments)
    fill(cache, "a", encoded(10))
    moments.off = True
    assert cache.find("a") is None


def test_only_reads_that_depend_on_the_request_and_the_database_are_cacheable() -> None:
    def route(handler: Any = lambda query: query, method: str = "GET", **more: Any) -> Route:
        return Route(method, f"{V1}/things", handler, **more)

    assert route().cacheable
    assert not route(method="POST").cacheable
    assert not route(lambda query, now: (query, now)).cacheable
    assert not route(cost=NO_STORE).cacheable
    assert not route(cost=SLOW).cacheable
    assert not route(family=Family.PLAIN).cacheable
    assert not route(family=Family.INSIGHTS).cacheable  # figures are of the moment
    assert not route(cost=Cost(render=lambda drawing: drawing)).cacheable
