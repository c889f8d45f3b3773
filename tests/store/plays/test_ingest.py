"""Ingestion of plays: accepted, repeated and refused ones; figures do not depend on their order."""

import random
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, MINUTE, SECOND
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Listener, Play, PlayCount
from musicsvc.store.plays import ingest, verify
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.rollups import blocks, counts, listeners
from musicsvc.store.plays.subjects import TRACK
from tests.conftest import NOW
from tests.support import play_counts
from tests.support.examples import examples
from tests.support.play_counts import roll_up
from tests.support.reported_plays import PLAYED, TODAY, account, figures, numbers, read_figures, recounted, report
from tests.support.rolled_back import rolled_back


def test_each_refusal_has_its_reason_and_the_rest_is_accepted(store: Store, reporter: Identity) -> None:
    alone = store.write(lambda: account(reports_plays=False, email="bob@label.test")).result()
    heard = [
        ReportedPlay(9, NOW),
        ReportedPlay(1, NOW, "somebody"),
        ReportedPlay(1, NOW + 5 * MINUTE),
        ReportedPlay(1, NOW + 5 * MINUTE + 1),
    ]
    outcome = report(store, heard, alone)
    assert (outcome.accepted, outcome.repeated) == (1, 0)
    assert outcome.refused == [(0, tracks.UNKNOWN), (1, ingest.FOR_OTHERS), (3, ingest.FUTURE)]
    late = [ReportedPlay(1, NOW - 400 * DAY, "somebody"), ReportedPlay(1, NOW - 400 * DAY - 1, "somebody")]
    assert report(store, late, reporter) == ingest.IngestOutcome(accepted=1, refused=[(1, ingest.TOO_OLD)])
    assert report(store, heard[1:2], reporter).accepted == 1


def test_no_opaque_name_can_be_an_accounts_own_key(store: Store, reporter: Identity) -> None:
    own = [
        ReportedPlay(1, NOW),
        ReportedPlay(1, NOW, f"account:{reporter.user_id}"),
        ReportedPlay(1, NOW, "opaque:x"),
        ReportedPlay(1, NOW, "x"),
    ]
    assert report(store, own, reporter).accepted == 4
    keys = store.read(lambda: {row.key for row in Listener.select()}).result()
    mine = f"account:{reporter.user_id}"
    assert keys == {mine, f"opaque:{mine}", "opaque:opaque:x", "opaque:x"}


def test_a_clients_id_makes_a_play_and_its_repeat_once_for_each_account(store: Store, reporter: Identity) -> None:
    other = store.write(lambda: account(reports_plays=True, email="bob@label.test")).result()
    first = ReportedPlay(1, NOW, "a", client_id="x")
    assert report(store, [first, first, ReportedPlay(1, NOW, "a", client_id="y")], reporter).accepted == 2
    elsewhere = ReportedPlay(2, NOW - DAY, "b", client_id="x")
    assert (report(store, [elsewhere], reporter).repeated, report(store, [elsewhere], other).accepted) == (1, 1)


def test_repeats_among_hundreds_of_new_plays_are_left_out(store: Store, reporter: Identity) -> None:
    heard = [ReportedPlay(1, NOW - at * MINUTE, "a") for at in range(700)]
    assert report(store, heard[300:310], reporter) == ingest.IngestOutcome(accepted=10)
    assert report(store, [*heard, heard[600], heard[5]], reporter) == ingest.IngestOutcome(accepted=690, repeated=12)
    assert figures(store)[TRACK, 1, 0, play_counts.ALL_TIME] == (700, [1])


def test_a_play_keeps_the_time_of_its_first_report(store: Store, reporter: Identity) -> None:
    heard = [ReportedPlay(1, NOW - DAY, "a"), ReportedPlay(2, NOW)]
    for now in (NOW, NOW + MINUTE):
        report(store, heard, reporter, now)
    stored = store.read(lambda: {row.track: (row.reporter, row.reported_at) for row in Play.select()}).result()
    assert stored == {1: (reporter.user_id, NOW), 2: (reporter.user_id, NOW)}


# Figures do not depend on the order of plays, on batches, or on blocks made meanwhile.

TIMES = [NOW - back * DAY + at * 15 * SECOND for back in PLAYED for at in range(4)]
REPORTED = some.lists(
    some.builds(
        ReportedPlay,
        track_id=some.integers(1, 3),
        played_at=some.sampled_from(TIMES),
        listener=some.sampled_from(["a", "b", "c", "d"]),
        duration_ms=some.none() | some.integers(0, 86_400_000),
        client_id=some.sampled_from([None, None, *map(str, range(30))]),
        platform=some.none(),
        names=some.none(),
    ),
    min_size=1,
    max_size=50,
)


def alike(heard: Sequence[ReportedPlay]) -> list[ReportedPlay]:
    """Plays in which those with one client's id are equal, so that their order cannot matter."""
    first: dict[str, ReportedPlay] = {}
    return [play if play.client_id is None else first.setdefault(play.client_id, play) for play in heard]


def after(store: Store, batches: Sequence[Sequence[ReportedPlay]], actor: Identity, folds: Sequence[int] = ()) -> Any:
    """Return the figures after these batches and the number of accepted plays; the store is left unchanged."""

    def unit() -> Any:
        accepted = 0
        for batch, most in zip_longest(batches, folds):
            accepted += ingest.report(batch or [], now=NOW, actor=actor).accepted
            blocks.roll_up(most or 0)
        return read_figures(), accepted

    return rolled_back(store, unit)


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(heard=REPORTED.map(alike), chance=some.randoms(use_true_random=False), size=some.integers(1, 20))
def test_figures_are_the_same_whatever_the_order_and_the_batching(
    store: Store, reporter: Identity, heard: list[ReportedPlay], chance: random.Random, size: int
) -> None:
    shuffled = chance.sample(heard, len(heard)) + chance.sample(heard, len(heard) // 2)
    batches = [shuffled[start : start + size] for start in range(0, len(shuffled), size)]
    folds = [chance.randrange(4) for _ in batches]
    whole, pieces = after(store, [heard], reporter), after(store, batches, reporter, folds)
    assert numbers(whole[0]) == numbers(pieces[0])
    expected, accepted = recounted(heard)
    assert (whole[1], pieces[1]) == (accepted, accepted)
    assert numbers(whole[0]) == {key: (count, len(people)) for key, (count, people) in expected.items()}


@pytest.mark.slow
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(heard=REPORTED)
@example(heard=[ReportedPlay(1, TIMES[at], "a", at) for at in (1, 0)])
@example(heard=[ReportedPlay(track, TIMES[at], "b", None, "7") for track, at in ((1, 1), (2, 0))])
def test_of_the_repeats_in_a_batch_the_earliest_is_stored(
    store: Store, reporter: Identity, heard: list[ReportedPlay]
) -> None:
    expected: dict[Any, ReportedPlay] = {}
    for play in sorted(heard, key=lambda each: each.played_at):
        slot = play.played_at // (30 * SECOND)
        expected.setdefault(play.client_id or (play.track_id, play.listener, slot), play)

    def unit() -> None:
        ingest.report(heard, now=NOW, actor=reporter)
        names = {row.id: row.key.removeprefix("opaque:") for row in Listener.select()}
        stored = [(row.track, row.played_at, names[row.listener], row.duration_ms) for row in Play.select()]
        assert Counter(stored) == Counter(play[:4] for play in expected.values())

    rolled_back(store, unit)


@pytest.mark.parametrize(("level", "back"), [(counts.DAY, 0), (counts.BLOCK32, 60)])
def test_counts_that_many_plays_are_added_to_stay_exact_and_small(
    store: Store, reporter: Identity, level: int, back: int
) -> None:
    heard = [ReportedPlay(1, NOW - back * DAY - at * MINUTE, f"l{at % 150}") for at in range(400)]
    report(store, [heard[0], ReportedPlay(1, NOW, "l0")], reporter)
    roll_up(store)
    for start in range(0, 400, 50):
        report(store, heard[start : start + 50], reporter)
    found = store.read(lambda: PlayCount.get(PlayCount.key == counts.key(level, TODAY - back, TRACK, 1))).result()
    assert (found.plays, listeners.count(found.listeners)) == (400, 150)
    assert len(found.listeners) < 150 * 4


@pytest.mark.slow
def test_concurrent_reports_rollups_and_repeats_count_each_play_once(store: Store, reporter: Identity) -> None:
    heard = [ReportedPlay(1 + at % 3, NOW - at * 7 * DAY // 60, f"l{at % 11}") for at in range(600)]

    def unit(start: int) -> int:
        accepted = ingest.report(heard[start : start + 120], now=NOW, actor=reporter).accepted
        blocks.roll_up(2)
        return accepted

    waiting = [store.write(partial(unit, start)) for start in [*range(0, 600, 40)] * 2]
    assert sum(each.result() for each in waiting) == len(heard)
    report = verify.run(store, check=True, on_progress=lambda _done, _total: None)
    assert (report.differing, report.plays) == (0, len(heard))
