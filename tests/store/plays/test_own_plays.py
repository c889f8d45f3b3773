"""Own plays of an account: one in each half minute, at most 14 days old."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, SECOND
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Play
from musicsvc.store.plays import ingest, verify
from musicsvc.store.plays.ingest import IngestOutcome, ReportedPlay
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.reported import own_plays
from musicsvc.store.plays.rollups import listeners
from tests.conftest import NOW
from tests.support.examples import examples
from tests.support.reported_plays import report
from tests.support.rolled_back import rolled_back

SLOT_START = NOW // SLOT * SLOT
TIMES = [SLOT_START - at * 10 * SECOND for at in range(1, 13)] + [NOW - 14 * DAY, NOW - 14 * DAY - 1]
IDS = some.sampled_from([None, None, None, "x", "y", "z"])
REPORTED = partial(some.builds, ReportedPlay, platform=some.none(), names=some.none())
OWN = REPORTED(some.integers(1, 3), some.sampled_from(TIMES), some.none(), some.none(), IDS)
OTHERS = REPORTED(some.just(1), some.sampled_from(TIMES), some.just("a"), some.none(), some.none())
BATCHES = some.lists(some.lists(OWN | OTHERS, min_size=1, max_size=12), min_size=1, max_size=5)


class Expected(NamedTuple):
    """The effect of a batch of plays: accepted and repeated plays, and the positions of refused ones."""

    accepted: int
    repeated: int
    refused: list[int]


class Model:
    """The rules in plain Python."""

    def __init__(self) -> None:
        self.tracks: dict[int, list[int]] = defaultdict(list)  # of own plays, by half minute
        self.ids: set[str] = set()
        self.others: set[int] = set()

    def report(self, batch: Sequence[ReportedPlay]) -> Expected:
        refused = [at for at, play in enumerate(batch) if play.listener is None and play.played_at < NOW - 14 * DAY]
        accepted = repeated = 0
        for at, play in sorted(enumerate(batch), key=lambda each: (each[1].played_at, each[0])):
            if at in refused:
                continue
            result = self._add(play)
            accepted += result == "accepted"
            repeated += result == "repeated"
            if result == "refused":
                refused.append(at)
        return Expected(accepted, repeated, sorted(refused))

    def _add(self, play: ReportedPlay) -> str:
        slot = play.played_at // (30 * SECOND)
        if play.listener is not None:
            known = slot in self.others
            self.others.add(slot)
            return "repeated" if known else "accepted"
        if play.client_id in self.ids or play.track_id in self.tracks[slot]:
            return "repeated"
        if self.tracks[slot]:
            return "refused"
        self.tracks[slot].append(play.track_id)
        if play.client_id is not None:
            self.ids.add(play.client_id)
        return "accepted"


@pytest.mark.slow
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
def test_of_an_accounts_own_plays_one_counts_in_each_half_minute(
    store: Store, reporter: Identity, batches: list[list[ReportedPlay]]
) -> None:
    model = Model()
    expected = [model.report(batch) for batch in batches]

    def unit() -> list[Expected]:
        found = []
        for batch in batches:
            outcome = ingest.report(batch, now=NOW, actor=reporter)
            found.append(Expected(outcome.accepted, outcome.repeated, [at for at, _ in outcome.refused]))
        stored = Play.select(Play.slot, Play.track).where(Play.listener == listener()).order_by(Play.slot)
        assert [*stored.tuples()] == [(slot, *tracks) for slot, tracks in sorted(model.tracks.items()) if tracks]
        return found

    def listener() -> int:
        return listeners.ensure([listeners.account_key(reporter.user_id)]).popitem()[1]

    assert rolled_back(store, unit) == expected


def test_the_reason_says_which_rule_refuses_an_own_play(store: Store, reporter: Identity) -> None:
    heard = [
        ReportedPlay(2, SLOT_START + 2 * SECOND),
        ReportedPlay(1, SLOT_START + SECOND, client_id="x"),
        ReportedPlay(1, SLOT_START + 3 * SECOND, client_id="y"),
        ReportedPlay(3, NOW - 14 * DAY - 1),
        ReportedPlay(3, NOW - 14 * DAY),
        ReportedPlay(3, NOW - 400 * DAY, "a"),
    ]
    refused = [(0, own_plays.SECOND_PLAY), (3, own_plays.TOO_OLD)]
    assert report(store, heard, reporter) == IngestOutcome(accepted=3, repeated=1, refused=refused)
    assert report(store, heard, reporter) == IngestOutcome(accepted=0, repeated=4, refused=refused)


def test_ids_of_own_plays_and_of_plays_for_others_are_of_one_account(store: Store, reporter: Identity) -> None:
    heard = [
        ReportedPlay(1, SLOT_START + 2 * SECOND, client_id="x"),
        ReportedPlay(1, SLOT_START, "a", client_id="x"),
        ReportedPlay(2, SLOT_START + 3 * SECOND),
    ]
    assert report(store, heard, reporter) == IngestOutcome(accepted=2, repeated=1)


def test_where_the_setting_refuses_own_plays_those_for_others_are_accepted(store: Store, reporter: Identity) -> None:
    heard = [ReportedPlay(1, NOW), ReportedPlay(1, NOW, "a")]
    outcome = store.write(lambda: ingest.report(heard, now=NOW, actor=reporter, own_accepted=False)).result()
    assert outcome == IngestOutcome(accepted=1, refused=[(0, own_plays.TURNED_OFF)])


def test_reports_at_the_same_time_store_one_own_play_in_each_half_minute(store: Store, reporter: Identity) -> None:
    heard = [
        ReportedPlay(1 + at % 3, SLOT_START - half * SLOT + at * SECOND, client_id=f"{half}.{at}")
        for half in range(5)
        for at in range(20)
    ]
    random.Random(1).shuffle(heard)
    units = [partial(ingest.report, [play], now=NOW, actor=reporter) for play in heard]
    outcomes = [waiting.result() for waiting in [store.write(unit) for unit in units]]
    assert sum(outcome.accepted for outcome in outcomes) == 5
    assert store.read(lambda: Play.select(Play.slot).distinct().count()).result() == 5
    found = verify.run(store, check=True, on_progress=lambda _done, _total: None)
    assert (found.differing, found.plays) == (0, 5)


def test_plays_of_others_need_no_query_for_the_rule_of_own_plays(store: Store, reporter: Identity) -> None:
    def unit(listener: str | None) -> list[str]:
        heard = [ReportedPlay(1, SLOT_START - at * SLOT, listener) for at in (1, 2)]
        made: list[str] = []
        note = lambda statement: made.append(str(statement))  # noqa: E731 - removed by its name
        current().query_hooks.append(note)
        try:
            ingest.report(heard, now=NOW, actor=reporter)
        finally:
            current().query_hooks.remove(note)
        return [sql for sql in made if re.search('"slot" (IN|= ANY)', sql)]

    assert len(store.write(partial(unit, "a")).result()) == 0
    assert len(store.write(partial(unit, None)).result()) == 2  # plays, and listens that wait for their track
