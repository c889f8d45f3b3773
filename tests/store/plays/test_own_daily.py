"""Own plays of an account: at most 600 of each day, whatever the batches."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, SECOND
from musicsvc.store import opening
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Play
from musicsvc.store.plays import ingest, retention
from musicsvc.store.plays.ingest import IngestOutcome, ReportedPlay
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY
from musicsvc.store.plays.reported import account_plays, own_plays
from musicsvc.store.plays.reported.account_plays import Reports
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.schema import history, schema
from tests.conftest import NOW
from tests.support.examples import examples
from tests.support.reported_plays import TODAY, account, report, world
from tests.support.rolled_back import rolled_back
from tests.support.undoing import quiet

NOON = (TODAY - 1) * DAY + DAY // 2
LIMIT = 3
ALL = 600
FULL = own_plays.DAY_FULL.format

# A track, a half minute, a shift within it, an id; days are full soon.
TIMES = some.builds(
    lambda day, half, at: NOON - day * DAY + half * SLOT + at * SECOND,
    some.integers(0, 1), some.integers(0, 7), some.sampled_from([0, 0, 9]),
)  # fmt: skip
REPORTED = partial(some.builds, ReportedPlay, platform=some.none(), names=some.none())
OWN = REPORTED(some.integers(1, 2), TIMES, some.none(), some.none(), some.sampled_from([None, None, "x", "y", "z"]))
OTHERS = REPORTED(some.just(1), TIMES, some.just("a"), some.none(), some.none())
WITHDRAWAL = some.integers(1, 2)  # of this track
STEPS = some.lists(some.lists(OWN | OTHERS, min_size=1, max_size=12) | WITHDRAWAL, min_size=1, max_size=6)


class Reference:
    """The rules in plain Python: the stored own plays, and what becomes of a batch."""

    def __init__(self) -> None:
        self.own: dict[int, ReportedPlay] = {}  # by half minute
        self.others: set[int] = set()

    def report(self, batch: Sequence[ReportedPlay]) -> tuple[int, list[tuple[int, str]]]:
        """Return the number of accepted plays, and positions and reasons of those that are refused."""
        accepted, refused = 0, []
        for at, play in sorted(enumerate(batch), key=lambda each: (each[1].played_at, each[0])):
            half = play.played_at // SLOT
            if play.listener is not None:
                accepted += half not in self.others
                self.others.add(half)
            elif half in self.own and self.own[half].track_id != play.track_id and not self._has(play.client_id):
                refused.append((at, own_plays.SECOND_PLAY))
            elif half not in self.own and not self._has(play.client_id):
                if sum(other // SLOTS_PER_DAY == half // SLOTS_PER_DAY for other in self.own) == LIMIT:
                    refused.append((at, FULL(LIMIT)))
                else:
                    self.own[half] = play
                    accepted += 1
        return accepted, sorted(refused)

    def _has(self, client_id: str | None) -> bool:
        return client_id is not None and any(play.client_id == client_id for play in self.own.values())

    def withdraw(self, track: int) -> None:
        self.own = {half: play for half, play in self.own.items() if play.track_id != track}
        if track == 1:
            self.others.clear()


def own_days(counts: str = "SELECT day, plays FROM own_play_day WHERE plays > 0") -> Counter[int]:
    return Counter(dict(fetch(counts)))


@pytest.mark.slow
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_of_a_day_so_many_own_plays_are_accepted_as_in_plain_python(
    store: Store, reporter: Identity, steps: list[list[ReportedPlay] | int]
) -> None:
    reference = Reference()

    def unit() -> None:
        for step in steps:
            if isinstance(step, int):
                account_plays.withdraw_batch(Reports(reporter.user_id, track=step), now=NOW, actor="cli")
                reference.withdraw(step)
            else:
                outcome = ingest.report(step, now=NOW, actor=reporter, own_daily=LIMIT)
                assert (outcome.accepted, outcome.refused) == reference.report(step)
                assert outcome.accepted + outcome.repeated + len(outcome.refused) == len(step)
            assert own_days() == Counter(half // SLOTS_PER_DAY for half in reference.own)

    rolled_back(store, unit)


def day_of_plays(count: int, *, back: int = 1, first: int = 0, track: int = 1) -> list[ReportedPlay]:
    """Return plays in as many half minutes of a day, each with an id of its own."""
    start = (TODAY - back) * DAY
    return [
        ReportedPlay(track, start + half * SLOT, client_id=f"{back}.{half}") for half in range(first, first + count)
    ]


@pytest.mark.slow
def test_600_own_plays_of_a_day_are_accepted_whatever_the_batches(store: Store, reporter: Identity) -> None:
    assert report(store, day_of_plays(400), reporter) == IngestOutcome(accepted=400)
    second = report(store, day_of_plays(400, first=400, track=2), reporter)
    assert (second.accepted, len(second.refused)) == (200, 200)
    assert {*second.refused} == {(at, FULL(ALL)) for at in range(200, 400)}
    third = report(store, day_of_plays(2880 - 800, first=800, track=3), reporter)
    assert (third.accepted, len(third.refused)) == (0, 2080)
    assert report(store, day_of_plays(400), reporter) == IngestOutcome(repeated=400)


@pytest.mark.slow
def test_each_of_14_days_has_600_places(store: Store, reporter: Identity) -> None:
    plays = [play for back in range(1, 14) for play in day_of_plays(700, back=back)]
    assert report(store, plays, reporter).accepted == 13 * ALL
    assert store.read(own_days).result() == {TODAY - back: ALL for back in range(1, 14)}


def test_of_a_batch_the_earliest_plays_have_the_places_then_the_first(store: Store, reporter: Identity) -> None:
    heard = [ReportedPlay(1 + at % 2, NOON + half * SLOT) for at, half in enumerate((5, 4, 3, 3, 2, 1))]
    outcome = store.write(partial(ingest.report, heard, now=NOW, actor=reporter, own_daily=LIMIT)).result()
    refused = [(0, FULL(LIMIT)), (1, FULL(LIMIT)), (3, own_plays.SECOND_PLAY)]
    assert outcome == IngestOutcome(accepted=3, refused=refused)
    assert store.read(lambda: [*Play.select(Play.slot, Play.track).order_by(Play.slot).tuples()]).result() == [
        (NOON // SLOT + half, track) for half, track in ((1, 2), (2, 1), (3, 1))
    ]


@pytest.mark.slow
def test_two_batches_at_once_get_no_more_places_than_one(store: Store, reporter: Identity) -> None:
    batches = [day_of_plays(20, first=20 * number) for number in range(40)]
    waiting = [store.write(partial(ingest.report, batch, now=NOW, actor=reporter)) for batch in batches]
    assert sum(each.result().accepted for each in waiting) == ALL
    assert store.read(lambda: Play.select().count()).result() == ALL


def test_another_store_of_the_same_database_has_no_places_of_its_own(
    store: Store, store_url: str, reporter: Identity
) -> None:
    with opening.connect(store_url) as other:
        batches = [day_of_plays(50, first=50 * number) for number in range(20)]
        waiting = [
            node.write(partial(ingest.report, batch, now=NOW, actor=reporter))
            for batch, node in zip(batches, (store, other) * 10, strict=True)
        ]
        assert sum(each.result().accepted for each in waiting) == ALL


def test_each_account_has_its_places_and_plays_of_others_need_none(store: Store, reporter: Identity) -> None:
    other = store.write(lambda: account(reports_plays=False, email="bob@label.test")).result()
    others = [play._replace(listener="a", client_id=None) for play in day_of_plays(700)]
    assert report(store, [*day_of_plays(700), *others], reporter).accepted == ALL + 700
    assert report(store, day_of_plays(700), other).accepted == ALL


def test_a_withdrawn_play_gives_its_place_back(store: Store, reporter: Identity) -> None:
    both = [*day_of_plays(500), *day_of_plays(200, first=500, track=2)]
    assert report(store, both, reporter).accepted == ALL
    reports = Reports(reporter.user_id, track=2)
    summary = store.read(partial(account_plays.summarize, reports)).result()
    account_plays.withdraw(store, reports, summary, now=NOW, actor="cli", on_progress=quiet)
    assert report(store, day_of_plays(400, first=700, track=3), reporter).accepted == 100


def test_counts_of_deleted_days_are_deleted(store: Store, reporter: Identity) -> None:
    report(store, [play for back in (1, 2, 3) for play in day_of_plays(5, back=back)], reporter)
    retention.prune(store, 2, now=NOW, on_progress=quiet)
    assert store.read(own_days).result() == {TODAY - 1: 5, TODAY - 2: 5}


def test_an_upgrade_counts_the_own_plays_of_earlier_versions(new_database: Callable[..., str], tmp_path: Path) -> None:
    url, former = new_database(migrated=False), tmp_path / "former"
    former.mkdir()
    for name in history.available()[:4]:
        shutil.copy(history.MIGRATIONS / f"{name}.py", former)
    schema.upgrade(url, folder=former)
    with opening.open_unchecked(url) as store:
        store.write(_fill_former).result()
    assert "0005_own_plays" in schema.upgrade(url)
    with opening.connect(url) as store:
        assert store.read(own_days).result() == {TODAY: 2, TODAY - 14: 1}


def _fill_former() -> None:
    """Store plays as programs did before they counted own plays: of two accounts, for others, and an old one."""
    world()
    own, other = (account(reports_plays=True, email=email) for email in ("a@label.test", "b@label.test"))
    keys = [listeners.account_key(own.user_id), listeners.account_key(other.user_id), listeners.opaque_key("a")]
    ids = listeners.ensure(keys)
    mine, theirs, named = (ids[key] for key in keys)
    start = TODAY * SLOTS_PER_DAY
    rows = [
        (start, mine, own),
        (start + 1, mine, own),
        (start - 14 * SLOTS_PER_DAY, mine, own),
        (start - 20 * SLOTS_PER_DAY, mine, own),
        (start, named, own),
        (start + 2, theirs, own),  # of a listener that is not the reporter
    ]
    fields = ("slot", "track", "listener", "client_key", "played_at", "reporter")
    bulk.insert(Play, fields, [(slot, 1, who, ingest.WITHOUT_ID, slot * SLOT, by.user_id) for slot, who, by in rows])
