"""The version of the database: changed by each commit at once, by one of counters alone a little later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from musicsvc.clock import isoformat
from musicsvc.server.access import database_version
from musicsvc.server.access.database_version import DatabaseVersion
from musicsvc.store import opening
from musicsvc.store.catalog import tracks
from musicsvc.store.models import Genre, Track
from tests.conftest import NOW
from tests.support.prometheus import scraped, total

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.engine.store import Store
    from tests.support.serving import Client

pytestmark = pytest.mark.only_on("sqlite")
SECONDS = 0.3
HITS = "musicsvc_answer_cache_hits_total"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_version, "COUNTERS_SECONDS", SECONDS)


async def later(version: DatabaseVersion) -> int | None:
    """Return the version in another turn of the event loop."""
    await asyncio.sleep(0)
    return version()


def add_genre(name: str) -> Callable[[], None]:
    return lambda: Genre.insert(name=name, display_name=name).execute() and None


async def test_it_changes_with_each_commit_that_changes_something_and_once_a_turn(store: Store) -> None:
    version = DatabaseVersion(store)
    seen = [await later(version)]
    with opening.connect(store.url) as other:
        for number, writer in enumerate((store, other, store, other)):
            writer.write(add_genre(f"g{number}")).result()
            assert version() == seen[-1]  # this turn has read it
            seen.append(await later(version))
        other.write(lambda: None).result()
        assert await later(version) == seen[-1]
    assert len(set(seen)) == len(seen) == 5


async def test_counters_change_it_later_and_keep_nothing_else_waiting(store: Store) -> None:
    version = DatabaseVersion(store)
    first = await later(version)
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(SECONDS + 5):
        while (now := await later(version)) == first:
            store.write_counters(add_genre(f"c{asyncio.get_running_loop().time()}")).result()
            await asyncio.sleep(0.01)
    assert asyncio.get_running_loop().time() - began >= SECONDS
    store.write_counters(add_genre("counted")).result()
    assert await later(version) == now
    store.write(add_genre("written")).result()
    assert await later(version) not in {first, now}


async def test_counters_changed_since_a_request_long_ago_are_read_at_once(store: Store) -> None:
    version = DatabaseVersion(store)
    first = await later(version)
    store.write_counters(add_genre("counted")).result()
    await asyncio.sleep(SECONDS)
    assert await later(version) != first


async def test_a_group_with_one_other_unit_changes_it_at_once(store: Store) -> None:
    version = DatabaseVersion(store)
    first = await later(version)
    for future in [
        store.write_counters(add_genre("a")),
        store.write(add_genre("b")),
        store.write_counters(add_genre("c")),
    ]:
        future.result()
    assert await later(version) != first


async def test_reported_plays_show_in_seconds_and_keep_other_answers_cached(client: Client, store: Store) -> None:
    track = store.write(lambda: Track.create(name="Rag", duration=1, created_at=1).id).result()

    async def plays() -> int:
        return int((await client.get(f"tracks/{track}")).json["track"]["plays"])

    assert await plays() == 0
    before = total(await scraped(client), HITS)
    report = {"plays": [{"track_id": track, "played_at": isoformat(NOW)}]}
    assert (await client.post("plays", report)).status == 201
    assert await plays() == 0
    assert total(await scraped(client), HITS) == before + 1
    async with asyncio.timeout(10):
        while await plays() == 0:  # noqa: ASYNC110 - as asked
            await asyncio.sleep(0.02)
    assert store.read(lambda: tracks.get(track).plays).result() == 1
