"""The moments at which what was read from the database becomes outdated: its tables at once, counters later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from musicsvc.clock import isoformat
from musicsvc.server import freshness as freshness_module
from musicsvc.server.freshness import Freshness, Stamp
from musicsvc.store import opening
from musicsvc.store.models import Genre, Tag, Track
from tests.conftest import NOW
from tests.support.prometheus import scraped, total

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.engine.store import Store
    from tests.support.serving import Client

pytestmark = pytest.mark.only_on("sqlite")
SECONDS = 1.0
HITS = "musicsvc_answer_cache_hits_total"
GENRES, TAGS = frozenset({"genre", "track"}), frozenset({"tag"})


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness_module, "COUNTERS_SECONDS", SECONDS)


async def stamp(freshness: Freshness) -> Stamp:
    """Return the stamp of another turn of the event loop."""
    await asyncio.sleep(0)
    now = freshness.now()
    assert now is not None
    return now


async def current(freshness: Freshness, since: Stamp, tables: frozenset[str] = GENRES) -> bool:
    """Return whether it still holds in another turn of the event loop."""
    await stamp(freshness)
    return freshness.holds(since, tables)


def add_genre(name: str) -> Callable[[], None]:
    return lambda: Genre.insert(name=name, display_name=name).execute() and None


def add_tag(name: str) -> Callable[[], None]:
    return lambda: Tag.insert(name=name).execute() and None


async def test_a_commit_of_any_process_outdates_its_tables_and_no_others(store: Store) -> None:
    freshness = Freshness(store)
    with opening.connect(store.url) as other:
        for number, writer in enumerate((store, other, store, other)):
            seen = await stamp(freshness)
            writer.write(add_genre(f"g{number}")).result()
            assert freshness.holds(seen, GENRES)  # this turn has seen the changes before
            assert not await current(freshness, seen, GENRES)
            assert await current(freshness, seen, TAGS)
            assert not freshness.holds(seen, GENRES | TAGS)
        seen = await stamp(freshness)
        other.write(lambda: None).result()
        other.write(lambda: Tag.update(name="x").where(Tag.id == 7).execute() and None).result()
        assert (await stamp(freshness)).number == seen.number


async def test_an_entry_read_after_a_change_is_current(store: Store) -> None:
    freshness = Freshness(store)
    before = await stamp(freshness)
    store.write(add_genre("a")).result()
    after = await stamp(freshness)
    store.write(add_tag("a")).result()
    assert not await current(freshness, before)
    assert await current(freshness, after)


async def test_counters_outdate_everything_later(store: Store) -> None:
    freshness = Freshness(store)
    first = await stamp(freshness)
    store.write_counters(add_genre("counted")).result()
    assert await current(freshness, first)
    await asyncio.sleep(SECONDS)
    assert not await current(freshness, first)
    assert await current(freshness, await stamp(freshness))


async def test_nothing_becomes_outdated_while_nothing_changes(store: Store) -> None:
    freshness = Freshness(store)
    first = await stamp(freshness)
    await asyncio.sleep(SECONDS)
    assert await current(freshness, first)


async def test_another_program_outdates_everything_later(store: Store) -> None:
    import apsw  # noqa: PLC0415 - only for this test

    freshness = Freshness(store)
    first = await stamp(freshness)
    other = apsw.Connection(store.url.removeprefix("sqlite:///"))
    other.execute("INSERT INTO genre (name, display_name) VALUES ('x', 'X')")
    other.close()
    store.write(add_tag("a")).result()
    assert await current(freshness, first)
    await asyncio.sleep(SECONDS)
    assert not await current(freshness, first)


async def test_a_group_with_one_other_unit_outdates_the_tables_of_that_unit(store: Store) -> None:
    freshness = Freshness(store)
    first = await stamp(freshness)
    for future in [
        store.write_counters(add_tag("a")),
        store.write(add_genre("b")),
        store.write_counters(add_tag("c")),
    ]:
        future.result()
    assert not await current(freshness, first, GENRES)
    assert await current(freshness, first, TAGS)


@pytest.mark.parametrize("counter", ["plays", "likes_count"])
async def test_counters_show_in_seconds_and_keep_other_answers_cached(
    client: Client, store: Store, counter: str
) -> None:
    track = store.write(lambda: Track.create(name="Rag", duration=1, created_at=1).id).result()

    async def counted() -> int:
        return int((await client.get(f"tracks/{track}")).json["track"][counter])

    assert await counted() == 0
    before = total(await scraped(client), HITS)
    if counter == "plays":
        report = {"plays": [{"track_id": track, "played_at": isoformat(NOW)}]}
        assert (await client.post("plays", report)).status == 201
    else:
        versions = store.table_versions()
        assert (await client.post(f"tracks/{track}/like")).status == 200
        assert "track_like" in {table for table, _ in store.table_versions().items() - versions.items()}
    assert await counted() == 0
    assert total(await scraped(client), HITS) == before + 1
    async with asyncio.timeout(10):
        while await counted() == 0:  # noqa: ASYNC110 - as asked
            await asyncio.sleep(0.02)
    assert await counted() == 1
