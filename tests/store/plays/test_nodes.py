"""Nodes that record plays in one PostgreSQL database at once."""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Event

import psycopg
import pytest

from musicsvc.clock import DAY, MINUTE, SECOND
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.editing import merging
from musicsvc.store.engine import sql
from musicsvc.store.engine.postgres.store import PostgresStore
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.plays import counting, ingest, verify
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.subjects import TRACK
from tests.conftest import NOW
from tests.support import reporting_node
from tests.support.play_counts import ALL_TIME, roll_up
from tests.support.postgres_locks import WAITING, one_waits
from tests.support.program import PATIENCE, until
from tests.support.reported_plays import PLAYED, figures, numbers, recounted, report

pytestmark = pytest.mark.only_on("postgres")
HEARD = [ReportedPlay(1 + at % 3, NOW - at * 7 * MINUTE, f"l{at % 11}", 900, f"c{at}") for at in range(60)]


@pytest.fixture
def other(store_url: str, tmp_path: Path) -> Iterator[Store]:
    """Another node, on a machine of its own."""
    with PostgresStore(store_url, tmp_path) as opened:
        yield opened


@contextmanager
def counting_node(store: Store) -> Iterator[None]:
    """Let a transaction of this node be the one that changes counts, in the `with` block."""
    locked, done = Event(), Event()

    def hold() -> None:
        counting.share()
        sql.lock(counts.COUNTING)
        locked.set()
        assert done.wait(2 * PATIENCE)

    held = store.write(hold)
    assert locked.wait(PATIENCE)
    try:
        yield
    finally:
        done.set()
        held.result()


def left(store: Store) -> int:
    """Return the number of plays that were recorded and are not counted."""
    rows = store.read(lambda: fetch("SELECT plays FROM play_count WHERE key >= ?", counting.FIRST_UNCOUNTED)).result()
    return sum(plays for (plays,) in rows)


def differing(store: Store) -> int:
    return verify.run(store, check=True, on_progress=lambda _done, _total: None).differing


def test_plays_that_another_node_keeps_from_counting_are_acknowledged_once_they_count(
    store: Store, other: Store, reporter: Identity
) -> None:
    with counting_node(store):
        reporting = other.write(partial(ingest.report, HEARD, now=NOW, actor=reporter))
        until(lambda: left(store) == len(HEARD))
        repeating = other.write(partial(ingest.report, HEARD, now=NOW, actor=reporter))
        until(lambda: other.workload.commits >= 4)  # both, and looks whether they are counted
        assert store.read(lambda: fetch(WAITING)).result() == [(0,)]
        assert not reporting.done()
        assert not repeating.done()
    assert (reporting.result().accepted, repeating.result().repeated) == (len(HEARD), len(HEARD))
    assert left(store) == 0
    assert numbers(figures(store)) == numbers(figures(other)) == numbers(recounted(HEARD)[0])


def test_a_node_that_counts_counts_plays_that_others_have_left(store: Store, other: Store, reporter: Identity) -> None:
    with counting_node(store):
        reporting = other.write(partial(ingest.report, HEARD[:40], now=NOW, actor=reporter))
        until(lambda: left(store) == 40)
    report(store, HEARD[40:], reporter)
    assert left(store) == 0
    assert reporting.result().accepted == 40
    assert numbers(figures(other)) == numbers(recounted(HEARD)[0])


def test_beside_a_program_of_version_0_1_0_plays_are_counted_as_they_are_recorded(
    store: Store, other: Store, store_url: str, reporter: Identity
) -> None:
    with psycopg.connect(store_url), counting_node(store):
        reporting = other.write(partial(ingest.report, HEARD, now=NOW, actor=reporter))
        until(lambda: one_waits(store))
        assert left(store) == 0
        assert not reporting.done()
    assert reporting.result().accepted == len(HEARD)
    assert differing(store) == 0


def test_plays_of_a_killed_node_count_with_the_next_change(
    store: Store, store_url: str, tmp_path: Path, reporter: Identity
) -> None:
    report(store, HEARD[:7], reporter)
    with counting_node(store), reporting_node.running(store_url, tmp_path, [HEARD], reporter) as node:
        until(lambda: left(store) == len(HEARD) - 7)
        node.kill()
    assert left(store) == len(HEARD) - 7
    assert report(store, HEARD, reporter).repeated == len(HEARD)
    assert left(store) == 0
    assert numbers(figures(store)) == numbers(recounted(HEARD)[0])


def test_a_recount_waits_for_plays_that_are_left(
    store: Store, store_url: str, tmp_path: Path, reporter: Identity
) -> None:
    with counting_node(store), reporting_node.running(store_url, tmp_path, [HEARD], reporter) as node:
        until(lambda: left(store) == len(HEARD))
        node.kill()
    assert differing(store) == 0
    assert numbers(figures(store)) == numbers(recounted(HEARD)[0])


def test_a_merge_takes_along_plays_that_are_left(
    store: Store, store_url: str, tmp_path: Path, reporter: Identity
) -> None:
    with counting_node(store), reporting_node.running(store_url, tmp_path, [HEARD], reporter) as node:
        until(lambda: left(store) == len(HEARD))
        node.kill()
    store.write(lambda: merging.merge("track", 3, 1, now=NOW)).result()
    assert left(store) == 0
    assert differing(store) == 0
    assert numbers(figures(store))[TRACK, 1, 0, ALL_TIME][0] == 40


def test_of_own_plays_at_two_nodes_one_is_accepted_per_half_minute(
    store: Store, other: Store, reporter: Identity
) -> None:
    times = [NOW - at * MINUTE for at in range(25)]

    def play(node: Store, at: int, track: int) -> Future[ingest.IngestOutcome]:
        return node.write(partial(ingest.report, [ReportedPlay(track, at)], now=NOW, actor=reporter))

    both = [(play(store, at, 1), play(other, at, 2)) for at in times]
    assert [sum(each.result().accepted for each in pair) for pair in both] == [1] * len(times)
    assert differing(store) == 0


def random_batches(chance: random.Random) -> Sequence[Sequence[ReportedPlay]]:
    """Return plays of many days by few listeners, so that nodes get the same ones at once."""
    plays = [
        ReportedPlay(
            chance.randint(1, 3),
            NOW - chance.choice(PLAYED) * DAY - chance.randrange(9) * 15 * SECOND,
            chance.choice("abcd"),
            chance.choice([None, 0, 900]),
        )
        for _ in range(150)
    ]
    named = [play._replace(client_id=str(number)) for number, play in enumerate(plays[::2])]
    return [[*chance.sample(plays, 9), *chance.sample(named, 9)] for _ in range(20)]


@pytest.mark.parametrize("seed", range(2))
def test_the_same_plays_at_two_nodes_at_once_count_once(
    store: Store, other: Store, reporter: Identity, seed: int
) -> None:
    chance = random.Random(seed)
    batches = random_batches(chance)
    taken = 0
    for some in zip(batches[::2], batches[1::2], strict=True):
        sent = [
            node.write(partial(ingest.report, batch, now=NOW, actor=reporter))
            for batch in some
            for node in chance.sample([store, other], 2)
        ]
        taken += sum(each.result().accepted for each in sent)
    roll_up(store, 3)
    expected, accepted = recounted([play for batch in batches for play in batch])
    assert taken == accepted
    assert numbers(figures(store)) == numbers(figures(other)) == numbers(expected)
    assert differing(store) == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_nodes_that_are_killed_lose_no_acknowledged_play_and_count_none_twice(
    store: Store, store_url: str, tmp_path: Path, reporter: Identity, seed: int
) -> None:
    chance = random.Random(seed)
    batches = random_batches(chance)
    with ExitStack() as stack:
        for number in range(2):
            node = stack.enter_context(reporting_node.running(store_url, tmp_path / f"{number}", batches, reporter))
            for _ in range(chance.randrange(1, 15)):
                node.await_batch()
                report(store, chance.choice(batches), reporter)
            node.kill()
    heard = [play for batch in batches for play in batch]
    assert report(store, heard, reporter).repeated > 0
    assert numbers(figures(store)) == numbers(recounted(heard)[0])
    assert differing(store) == 0
