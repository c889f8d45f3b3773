"""The moments at which what was read from the database becomes outdated: its tables at once, counters later."""

import asyncio
from collections.abc import Callable
from itertools import count

import pytest
from peewee import IntegrityError

from musicsvc.clock import isoformat
from musicsvc.server import app
from musicsvc.server import freshness as freshness_module
from musicsvc.server.freshness import Freshness, Source, Stamp
from musicsvc.store import opening
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.tables import counting
from musicsvc.store.models import Genre, Tag, Track
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.prometheus import scraped, total
from tests.support.serving import Client, StartServer

pytestmark = pytest.mark.only_on("sqlite")
AS_IT_IS = freshness_module.COUNTERS_SECONDS
HITS = "musicsvc_answer_cache_hits_total"
Passing = Callable[[], None]
GENRES, TAGS = frozenset({"genre", "track"}), frozenset({"tag"})


@pytest.fixture(autouse=True)
def seconds_pass(bounds: Bounds) -> Passing:
    """Return a function after which a few seconds have passed; before, none pass however slow the machine is."""
    bounds(counters_seconds=3600.0)
    return lambda: bounds(counters_seconds=0.0)


async def stamp(freshness: Freshness) -> Stamp:
    """Return the stamp of another turn of the event loop."""
    await asyncio.sleep(0)
    now = freshness.now()
    assert now is not None
    return now


async def current(freshness: Freshness, since: Stamp, tables: frozenset[str] = GENRES) -> bool:
    """Return whether it still holds in another turn of the event loop."""
    await stamp(freshness)
    return freshness.holds(Source(since, tables))


def add_genre(name: str) -> Callable[[], None]:
    return lambda: Genre.insert(name=name, display_name=name).execute() and None


def add_tag(name: str) -> Callable[[], None]:
    return lambda: Tag.insert(name=name).execute() and None


def in_another_program(store: Store, statement: str) -> None:
    """Run a statement as the tool `sqlite3` would."""
    import apsw  # noqa: PLC0415 - not installed for runs on PostgreSQL

    other = apsw.Connection(store.url.removeprefix("sqlite:///"))
    other.execute(statement)
    other.close()


async def test_a_commit_of_any_process_outdates_its_tables_and_no_others(store: Store) -> None:
    freshness = Freshness(store)
    with opening.connect(store.url) as other:
        for number, writer in enumerate((store, other, store, other)):
            seen = await stamp(freshness)
            writer.write(add_genre(f"g{number}")).result()
            assert freshness.holds(Source(seen, GENRES))  # this turn has seen the changes before
            assert not await current(freshness, seen, GENRES)
            assert await current(freshness, seen, TAGS)
            assert not freshness.holds(Source(seen, GENRES | TAGS))
        seen = await stamp(freshness)
        other.write(lambda: None).result()
        other.write(lambda: Tag.update(name="x").where(Tag.id == 7).execute() and None).result()
        assert (await stamp(freshness)).number == seen.number


async def test_a_statement_for_many_rows_outdates_its_table(store: Store) -> None:
    freshness = Freshness(store)
    seen = await stamp(freshness)
    store.write(lambda: sql.run_many("INSERT INTO tag (name) VALUES (?)", [("blues",), ("rag",)])).result()
    assert not await current(freshness, seen, TAGS)
    assert await current(freshness, seen, GENRES)


async def test_an_entry_read_after_a_change_is_current(store: Store) -> None:
    freshness = Freshness(store)
    before = await stamp(freshness)
    store.write(add_genre("a")).result()
    after = await stamp(freshness)
    store.write(add_tag("a")).result()
    assert not await current(freshness, before)
    assert await current(freshness, after)


async def test_what_was_compared_once_is_compared_with_later_changes_only(store: Store) -> None:
    freshness = Freshness(store)
    source = Source(first := await stamp(freshness), GENRES)
    store.write(add_tag("a")).result()
    later = await stamp(freshness)
    assert freshness.holds(source)
    assert source.stamp == Stamp(later.number, first.at)
    store.write(add_genre("a")).result()
    await stamp(freshness)
    assert not freshness.holds(source)


async def test_counters_outdate_what_was_read_from_their_tables_later(store: Store, seconds_pass: Passing) -> None:
    freshness = Freshness(store)
    await freshness.check_others()
    first = await stamp(freshness)
    store.write(add_genre("counted"), counters_only=True).result()
    await freshness.check_others()
    assert await current(freshness, first)
    seconds_pass()
    assert not await current(freshness, first)
    assert freshness.holds(Source(first, GENRES), counted=False)
    assert freshness.holds(Source(first, TAGS))
    assert await current(freshness, await stamp(freshness))
    store.write(add_genre("g")).result()
    await stamp(freshness)
    assert not freshness.holds(Source(first, GENRES), counted=False)


async def test_counters_of_all_that_a_foreign_key_changes_are_outdated(store: Store, seconds_pass: Passing) -> None:
    freshness = Freshness(store)
    track = store.write(lambda: Track.create(name="Rag", duration=1, created_at=1).id).result()
    await freshness.check_others()
    first = await stamp(freshness)
    store.write(lambda: Track.delete().where(Track.id == track).execute() and None, counters_only=True).result()
    seconds_pass()
    assert not await current(freshness, first, frozenset({"track_like"}))
    assert await current(freshness, first, TAGS)


async def test_a_statement_between_others_may_change_only_counters(store: Store, seconds_pass: Passing) -> None:
    def unit() -> None:
        add_tag("a")()
        with counting():
            add_genre("g")()
        add_tag("b")()

    freshness = Freshness(store)
    await freshness.check_others()
    first = await stamp(freshness)
    store.write(unit).result()
    assert not await current(freshness, first, TAGS)
    assert await current(freshness, first, GENRES)
    seconds_pass()
    assert not await current(freshness, first, GENRES)
    assert await current(freshness, first, frozenset({"account"}))


async def test_counters_in_a_unit_that_fails_outdate_nothing(store: Store, seconds_pass: Passing) -> None:
    def unit() -> None:
        add_genre("g")()
        raise ValueError("no")

    freshness = Freshness(store)
    await freshness.check_others()
    first = await stamp(freshness)
    with pytest.raises(ValueError, match="no"):
        store.write(unit, counters_only=True).result()
    store.write(add_tag("a"), counters_only=True).result()
    seconds_pass()
    assert await current(freshness, first, GENRES)
    assert not await current(freshness, first, TAGS)


@pytest.mark.parametrize("order", ["foreign", "foreign own", "own foreign", "own foreign own"])
async def test_another_program_outdates_everything_later(store: Store, order: str, seconds_pass: Passing) -> None:
    freshness = Freshness(store)
    await freshness.check_others()
    first = await stamp(freshness)
    for number, writer in enumerate(order.split()):
        if writer == "own":
            store.write(add_tag(str(number))).result()
        else:
            in_another_program(store, "INSERT INTO genre (name, display_name) VALUES ('x', 'X')")
    seconds_pass()
    await freshness.check_others()
    assert not await current(freshness, first)
    assert await current(freshness, await stamp(freshness))


async def test_another_program_does_not_outdate_what_is_young(store: Store) -> None:
    freshness = Freshness(store)
    await freshness.check_others()
    first = await stamp(freshness)
    in_another_program(store, "INSERT INTO genre (name, display_name) VALUES ('x', 'X')")
    await freshness.check_others()
    assert await current(freshness, first)


def test_what_another_program_writes_shows_within_five_seconds() -> None:
    assert AS_IT_IS + app.JOB_SECONDS <= 5


async def test_own_commits_are_not_taken_for_those_of_others(store: Store, seconds_pass: Passing) -> None:
    freshness = Freshness(store)
    await freshness.check_others()
    first = await stamp(freshness)
    for number in range(20):
        store.write(add_tag(str(number))).result()
        with pytest.raises(IntegrityError):
            store.write(add_tag(str(number))).result()
        await freshness.check_others()
    seconds_pass()
    assert await current(freshness, first)


@pytest.mark.slow
async def test_while_changes_of_others_are_unknown_everything_is_outdated_later(
    store: Store, seconds_pass: Passing
) -> None:
    import apsw  # noqa: PLC0415 - only for this test

    freshness = Freshness(store)
    await freshness.check_others()
    first = await stamp(freshness)
    store.write(add_tag("a")).result()
    locking = apsw.Connection(store.url.removeprefix("sqlite:///"))
    locking.execute("BEGIN IMMEDIATE")
    await freshness.check_others()  # waits in vain
    locking.close()
    seconds_pass()
    assert not await current(freshness, first)


async def test_a_write_of_a_foreign_program_shows_beside_constant_writes(
    bounds: Bounds, start_server: StartServer, store: Store, seconds_pass: Passing
) -> None:
    bounds(job_seconds=0.05)
    client = await start_server()
    seconds_pass()
    assert (await client.get("genres?perPage=100")).status == 200
    in_another_program(store, "INSERT INTO genre (name, display_name) VALUES ('x', 'X')")
    async with asyncio.timeout(30):
        for number in count():
            store.write(add_tag(str(number))).result()
            if b'"x"' in (await client.get("genres?perPage=100")).body:
                break
            await asyncio.sleep(0.02)


async def test_a_group_with_one_other_unit_outdates_the_tables_of_that_unit(store: Store) -> None:
    freshness = Freshness(store)
    first = await stamp(freshness)
    for future in [
        store.write(add_tag("a"), counters_only=True),
        store.write(add_genre("b")),
        store.write(add_tag("c"), counters_only=True),
    ]:
        future.result()
    assert not await current(freshness, first, GENRES)
    assert await current(freshness, first, TAGS)


@pytest.mark.parametrize("counter", ["plays", "likes_count"])
async def test_counters_show_in_seconds_and_keep_other_answers_cached(
    client: Client, store: Store, counter: str, seconds_pass: Passing
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
    seconds_pass()
    assert await counted() == 1


async def test_nothing_is_cached_while_changes_are_unknown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    freshness = Freshness(store)
    monkeypatch.setattr(store, "changes", lambda: None)
    assert freshness.now() is None
    assert freshness.now() is None  # not asked again in this turn
    monkeypatch.undo()
    before = await stamp(freshness)
    assert await current(freshness, before)
