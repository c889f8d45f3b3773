"""The JSON of rows that pages share: never stale, and in bounded memory."""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

import orjson
import pytest

from musicsvc.clock import MovableClock
from musicsvc.config import Settings
from musicsvc.server.freshness import Freshness, Source, Stamp
from musicsvc.server.responses.answer_cache import AnswerCache, Fragment, FragmentReader, Fragments
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.tables import counting
from musicsvc.store.models import Album, Artist
from tests.paging import world as worlds
from tests.server.responses.test_answer_cache import Moments, ready
from tests.support.bounds import Bounds
from tests.support.memory import traced
from tests.support.people import make_tracks
from tests.support.query_count import count_reads, queries
from tests.support.serving import Client, StartServer, person

SPELLING = count()


async def page(client: Client, path: str) -> Any:
    """Return the rows of a page under a spelling of its path that no cache has."""
    answer = await client.get(f"{path}?perPage=20&unknown={next(SPELLING)}")
    assert answer.status == 200
    return next(part for name, part in answer.json.items() if name != "status")["data"]


@pytest.fixture
async def manager(client: Client, store: Store, clock: MovableClock) -> Client:
    await ready(client)
    return client.holding(person(store, clock, "manager@label.test")[1])


@pytest.mark.slow
async def test_a_page_whose_rows_are_ready_reads_their_ids_alone(
    start_server: StartServer, store: Store, clock: MovableClock
) -> None:
    server = await start_server()
    world = store.write(partial(worlds.build, server.root, clock.now())).result()
    client = server.holding(world.tokens["ann"])
    await ready(client)
    first = await page(client, "albums")
    with queries(store) as made:
        assert await page(client, "albums") == first
    assert count_reads(made) == 2
    with queries(store) as made:
        assert (await page(client, "albums"))[3:5] == first[3:5]
        answer = await client.get("albums?perPage=2&page=3")
    assert answer.json["albums"]["data"] == first[4:6]
    assert count_reads(made) == 4


async def test_each_write_shows_in_rows_that_were_ready(manager: Client, store: Store) -> None:
    artist = (await manager.post("artists", {"name": "Anna"})).json["artist"]["id"]
    album = (await manager.post("albums", {"name": "One", "artist_id": artist})).json["album"]["id"]
    other = (await manager.post("albums", {"name": "Two", "artist_id": artist})).json["album"]["id"]

    async def shown() -> dict[int, tuple[str, list[str], list[str]]]:
        rows = await page(manager, "albums")
        assert rows[:2] == (await page(manager, f"artists/{artist}/albums"))[:2]
        return {
            row["id"]: (
                row["name"],
                [each["name"] for each in row["tracks"]],
                [each["name"] for each in row["artists"]],
            )
            for row in rows[:2]
        }

    assert await shown() == {other: ("Two", [], ["Anna"]), album: ("One", [], ["Anna"])}
    track = {"name": "Dawn", "album_id": album, "artists": [artist], "duration": 1000}
    assert (await manager.post("tracks", track)).status == 201
    assert await shown() == {other: ("Two", [], ["Anna"]), album: ("One", ["Dawn"], ["Anna"])}
    store.write(lambda: Artist.update(name="Maria").where(Artist.id == artist).execute()).result()
    assert await shown() == {other: ("Two", [], ["Maria"]), album: ("One", ["Dawn"], ["Maria"])}
    store.write(lambda: Album.update(name="Three").where(Album.id == other).execute()).result()
    assert await shown() == {other: ("Three", [], ["Maria"]), album: ("One", ["Dawn"], ["Maria"])}


async def test_a_cached_page_goes_with_its_rows(manager: Client) -> None:
    artist = (await manager.post("artists", {"name": "Anna"})).json["artist"]["id"]
    album = (await manager.post("albums", {"name": "One", "artist_id": artist})).json["album"]["id"]
    await page(manager, "albums")
    for _ in range(2):  # made of ready rows, then cached as a whole
        assert (await manager.get("albums")).json["albums"]["data"][0]["tracks"] == []
    track = {"name": "Dawn", "album_id": album, "artists": [artist], "duration": 1000}
    assert (await manager.post("tracks", track)).status == 201
    assert [each["name"] for each in (await manager.get("albums")).json["albums"]["data"][0]["tracks"]] == ["Dawn"]


async def test_entries_of_playlists_are_not_taken_for_tracks_with_their_ids(manager: Client, store: Store) -> None:
    first, second = make_tracks(store, 2)
    made = await manager.post("playlists", {"name": "Rags"})
    path = f"playlists/{made.json['playlist']['id']}/tracks"
    await manager.post(f"{path}/add", {"ids": [second, first]})
    assert sorted(row["id"] for row in await page(manager, "tracks")) == [first, second] == [1, 2]  # as the entries
    assert [row["id"] for row in await page(manager, path)] == [second, first]


@pytest.mark.slow
async def test_no_rows_are_kept_without_a_cache(start_server: StartServer, store: Store, clock: MovableClock) -> None:
    server = await start_server(Settings(server={"answer_cache": 0}))
    world = store.write(partial(worlds.build, server.root, clock.now())).result()
    client = server.holding(world.tokens["ann"])
    first = await page(client, "albums")
    with queries(store) as made:
        assert await page(client, "albums") == first
    assert count_reads(made) > 2


def fragment(stamp: Stamp | None, table: str, size: int = 10) -> Fragment:
    assert stamp is not None
    return Fragment(b"1" * size, Source(stamp, frozenset([table])))


def found(fragments: Fragments, ids: Sequence[int]) -> list[int]:
    return list(fragments.find("kind", ids))


def test_a_fragment_goes_with_a_change_of_its_tables_and_no_other() -> None:
    moments = Moments()
    fragments = Fragments(10_000, moments)
    fragments.add("kind", {1: fragment(moments.now(), "album"), 2: fragment(moments.now(), "track")})
    assert found(fragments, [1, 2, 3]) == [1, 2]
    assert not fragments.find("other", [1, 2])
    moments.change("album")
    assert found(fragments, [1, 2]) == [2]
    fragments.add("kind", {1: fragment(moments.now(), "album")})
    assert found(fragments, [1, 2]) == [1, 2]


def test_counted_memory_covers_what_fragments_take(store: Store) -> None:
    fragments = Fragments(10_000_000, Moments())

    def make(ids: Sequence[int]) -> list[bytes]:
        return [orjson.dumps("n" * row_id) for row_id in ids]

    def read(page: int) -> None:
        ids = range(page, page + 10)
        made = FragmentReader(fragments, Stamp(page, 0.0)).read("kind", ids, make)
        assert [json.loads(each) for each in made] == ["n" * row_id for row_id in ids]

    with traced() as taken:
        for page in range(300, 1300, 10):
            store.read(partial(read, page)).result()
        assert 0.7 * fragments.size < taken() <= fragments.size


def test_the_fragment_unused_for_longest_goes_first() -> None:
    moments = Moments()
    fragments = Fragments(4 * 1448, moments)
    for number in range(4):
        fragments.add("kind", {number: fragment(moments.now(), "album", 1000)})
    assert fragments.size == 4 * 1448
    fragments.add("kind", {0: fragment(moments.now(), "album", 900)})
    assert found(fragments, [1]) == [1]
    fragments.add("kind", {4: fragment(moments.now(), "album", 1000)})
    assert fragments.size == 3 * 1448 + 1348
    assert found(fragments, range(5)) == [0, 1, 3, 4]


@pytest.mark.only_on("sqlite")  # on PostgreSQL nothing is kept until the notices of changes arrive
async def test_what_shows_no_counters_stays_ready_while_plays_are_counted(store: Store, bounds: Bounds) -> None:
    bounds(counters_seconds=0.0)
    cache = AnswerCache(1 << 20, Freshness(store))
    artist = store.write(lambda: Artist.create(name="Anna", created_at=1).id).result()
    made: list[str] = []

    def name() -> bytes:
        made.append(Artist.get_by_id(artist).name)
        return b"packed"

    async def read(*, counted: bool) -> None:
        reader = cache.reader()
        assert reader is not None
        read = (
            (lambda: reader.read("counted", [artist], lambda _: [name()])[0])
            if counted
            else (lambda: reader.read_one("name", artist, name))
        )
        assert store.read(read).result() == b"packed"
        await asyncio.sleep(0)  # the next turn of the event loop sees what is new

    def rename(to: str) -> None:
        Artist.update(name=to).where(Artist.id == artist).execute()

    def count() -> None:
        with counting():
            rename("Anna")

    for counted, expected in ((False, ["Anna", "Bea"]), (True, ["Anna", "Anna", "Bea"])):
        made.clear()
        store.write(partial(rename, "Anna")).result()
        await read(counted=counted)
        store.write(count).result()
        await read(counted=counted)
        store.write(partial(rename, "Bea")).result()
        await read(counted=counted)
        await read(counted=counted)
        assert made == expected


async def test_nothing_is_kept_without_memory_for_it(store: Store) -> None:
    assert AnswerCache(0, Freshness(store)).reader() is None
