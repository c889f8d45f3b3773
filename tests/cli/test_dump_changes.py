"""A later dump to a folder equals one to a new folder, whatever has changed the plays, and writes only what changed."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY
from musicsvc.store import opening
from musicsvc.store.catalog import tracks
from musicsvc.store.editing import deletions, merging
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Track
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.people import deletion
from musicsvc.store.plays import ingest, retention
from musicsvc.store.plays.periods import SLOT, to_date
from musicsvc.store.plays.rollups import blocks, listeners, withdrawal
from musicsvc.store.plays.rollups.withdrawal import Selection
from tests.cli.conftest import Json, Run
from tests.conftest import NOW
from tests.support import dumps
from tests.support.command import run_in_process
from tests.support.examples import examples

DAYS = "SELECT DISTINCT slot / 2880 FROM play"


def nothing(_done: float, _total: float) -> None:
    """Ignore progress."""


def late(store: Store, number: int) -> None:
    """Add plays of accounts and of others."""
    chance = random.Random(number)
    _record(store, [dumps.play(chance, range(1, 30), number % 2) for _ in range(number % 3 + 1)])


def twins(store: Store, number: int) -> None:
    """Add two plays that are equal but for their clients' ids, to a half minute with two others."""
    at = NOW - 8 * DAY
    keys = [ingest.client_key("x", f"{number} {which}") for which in range(2)]
    _record(store, [PlayRow(at // SLOT, 1, 1, key, at + number % 7, None, 0) for key in keys])


def _record(store: Store, plays: list[PlayRow]) -> None:
    def add() -> None:
        kept_from = blocks.progress().kept_from
        dumps.record(each for each in plays if each.played_at // DAY >= kept_from)  # others are refused

    store.write(add).result()


def withdraw(store: Store, number: int) -> None:
    """Delete the plays that account 1 reported, of one listener, as withdrawals and undone imports do."""
    chosen = Selection("play.reporter = ? AND play.listener_id - play.listener_id / 9 * 9 = ?", (1, number % 9))
    days = sorted(day for (day,) in store.read(lambda: fetch(DAYS)).result())
    store.write(lambda: withdrawal.withdraw(chosen, days)).result()


def empty_a_day(store: Store, number: int) -> None:
    """Delete all plays of a day."""
    days = sorted(day for (day,) in store.read(lambda: fetch(DAYS)).result())
    if days:
        chosen = days[number % len(days)]
        store.write(lambda: withdrawal.withdraw(Selection("play.slot / 2880 = ?", (chosen,)), [chosen])).result()


def prune(store: Store, number: int) -> None:
    retention.prune(store, 3 + number % 7, now=NOW, on_progress=nothing)


def replace(store: Store, number: int) -> None:
    """Let a play begin a moment later in the same half minute, so that all counts stay."""
    change = (
        "UPDATE play SET played_at = slot * 30000000 + ?, duration_ms = ? WHERE slot = (SELECT max(slot) FROM play)"
    )
    store.write(lambda: sql.run(change, number % 1000, number)).result()


def merge(store: Store, number: int) -> None:
    ids = store.read(lambda: [row.id for row in Track.select(Track.id).order_by(Track.id)]).result()
    if len(ids) > 1:
        one, other = random.Random(number).sample(ids, 2)
        store.write(lambda: merging.merge("track", one, other, now=NOW)).result()


def delete(store: Store, number: int) -> None:
    def remove() -> None:
        ids = [row.id for row in Track.select(Track.id).order_by(Track.id)]
        if ids:
            deletions.delete(tracks.get(ids[number % len(ids)]), now=NOW, account=None, actor="cli")

    store.write(remove).result()


def edit(store: Store, number: int) -> None:
    def change() -> None:
        Track.update(duration=number).where(Track.id == 1).execute()
        Artist.update(name=f'"{number}", \\ und\nSöhne').where(Artist.id == 2).execute()
        Album.create(name="Neu", release_date="2026-02-28", created_at=NOW)

    store.write(change).result()


def erase(store: Store, number: int) -> None:
    def forget() -> None:
        if listeners.find([listeners.opaque_key(f"fan-{number % 60}")]):
            deletion.erase_listener(f"fan-{number % 60}", now=NOW)

    store.write(forget).result()


STEPS = (late, late, twins, withdraw, empty_a_day, prune, replace, merge, delete, edit, erase)


def dump(folder: Path) -> None:
    done = run_in_process(["plays", "dump", "--output", str(folder)])
    assert done.returncode == 0, done


@pytest.mark.slow
@given(steps=some.lists(some.tuples(some.sampled_from(STEPS), some.integers(0, 10_000)), min_size=1, max_size=4))
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_after_any_changes_a_later_dump_equals_a_new_one(
    new_database: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[tuple[Callable[[Store, int], None], int]],
) -> None:
    folder, url = tmp_path_factory.mktemp("dumps"), new_database()
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
    with opening.connect(url) as store:
        store.write(lambda: dumps.fill(random.Random(1), 60)).result()
        dump(folder / "later")
        for number, (step, value) in enumerate(steps):
            step(store, value)
            dump(folder / "later")
            dump(folder / f"new-{number}")
            assert dumps.files(folder / "later") == dumps.files(folder / f"new-{number}"), step
            assert dumps.plays(folder / "later") == dumps.stored(store)
        dumps.require_valid(folder / "later")


def day(back: int) -> str:
    return to_date(NOW // DAY - back).isoformat()


def test_only_days_that_changed_are_written_and_days_without_plays_go(ask: Json, store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    store.write(lambda: dumps.fill(random.Random(1), 200)).result()
    assert len(ask("plays", "dump", "--output", str(folder))["written"]) == len(dumps.PLAYED) + len(dumps.TABLES)
    twins(store, 3)
    assert ask("plays", "dump", "--output", str(folder))["written"] == [f"plays/day={day(8)}/part-0.parquet"]
    replace(store, 1)
    assert ask("plays", "dump", "--output", str(folder))["written"] == [f"plays/day={day(0)}/part-0.parquet"]
    chosen = NOW // DAY - 5
    store.write(lambda: withdrawal.withdraw(Selection("play.slot / 2880 = ?", (chosen,)), [chosen])).result()
    done = ask("plays", "dump", "--output", str(folder))
    assert (done["written"], done["removed"]) == ([], [f"plays/day={day(5)}/part-0.parquet"])
    assert not (folder / f"plays/day={day(5)}").exists()
    prune(store, 4)
    done = ask("plays", "dump", "--output", str(folder))
    assert (done["written"], done["complete_from"]) == ([], day(7))
    assert done["removed"] == [f"plays/day={day(back)}/part-0.parquet" for back in (9, 8)]
    assert dumps.manifest(folder)["complete_from"] == day(7)
    edit(store, 1234)
    changed = [f"tables/{table}.parquet" for table in ("tracks", "albums", "artists")]
    assert ask("plays", "dump", "--output", str(folder))["written"] == changed


def test_plays_of_a_deleted_track_keep_their_album_and_artists(run: Run, store: Store, tmp_path: Path) -> None:
    store.write(lambda: dumps.fill(random.Random(1), 200)).result()
    delete(store, 1)
    run("plays", "dump", "--output", str(tmp_path / "dump"))
    assert dumps.rows(f"{tmp_path}/dump/tables/tracks.parquet") == [
        (1, "Track", 1, 1),
        (2, None, 1, 1),
        (3, "Track", 1, None),
    ]
    credited = dumps.rows(f"{tmp_path}/dump/tables/track_artists.parquet")
    assert credited == [(1, 1, 0), (2, 1, None), (2, 2, None), (3, 2, 0)]
    assert dumps.plays(tmp_path / "dump") == dumps.stored(store)


def test_an_erased_listener_keeps_the_number_only(ask: Json, store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    store.write(lambda: dumps.fill(random.Random(1), 200)).result()
    ask("plays", "dump", "--output", str(folder))
    before = dumps.files(folder)
    erase(store, 7)
    assert ask("plays", "dump", "--output", str(folder))["written"] == []
    assert dumps.files(folder) == before
