"""Plays that an account reported are listed and withdrawn; all figures are exact afterwards."""

import random
from collections import Counter
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, MINUTE
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Play
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest, retention
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.periods import SLOT, Window
from musicsvc.store.plays.reported import account_plays
from musicsvc.store.plays.reported.account_plays import AccountPlay, Reports
from musicsvc.store.plays.rollups import blocks, withdrawal
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, Subject
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Administrator
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.examples import examples
from tests.support.reported_plays import SUBJECTS, TODAY, account, report
from tests.support.undoing import quiet, require_sound

DAYS = (0, 1, 3, 13, 40, 41, 80)
Row = tuple[int, int, int, int | None]  # account, track, slot, time of the report


@pytest.fixture
def eve(store: Store, reporter: Identity) -> Identity:  # noqa: ARG001 - creates the tracks
    """An account whose plays are withdrawn; the other one is honest."""
    return store.write(lambda: account(reports_plays=True, email="eve@label.test")).result()


def draw(chance: random.Random, size: int, names: Sequence[str | None]) -> list[ReportedPlay]:
    """Return random plays on some days, of half minutes of their own."""
    slots = chance.sample(range(1, 2000), size)
    return [
        ReportedPlay(
            chance.choice((1, 1, 2, 3)),
            NOW // SLOT * SLOT - chance.choice(DAYS) * DAY - slot * SLOT,
            chance.choice(names),
            chance.choice((None, 1, 90_000)),
            chance.choice((None, None, f"{slot}")),
        )
        for slot in slots
    ]


def stored() -> Counter[Row]:
    return Counter(fetch("SELECT reporter, track_id, slot, reported_at FROM play"))


def clear() -> None:
    for name in ("play", "play_count", "track_plays"):
        run(f"DELETE FROM {name}")


def withdraw(store: Store, reports: Reports, now: int = NOW) -> int:
    summary = store.read(partial(account_plays.summarize, reports)).result()
    done = account_plays.withdraw(store, reports, summary, now=now, actor="cli", on_progress=quiet)
    assert done == summary.plays
    return done


@pytest.mark.slow
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=some.integers(0, 1 << 32),
    since=some.sampled_from([None, 0, 1, 2]),
    track=some.sampled_from([None, 1, 3]),
    at_once=some.sampled_from([3, 20, 20_000]),
)
def test_withdrawn_plays_are_those_of_the_account_and_all_counts_are_exact(
    store: Store, reporter: Identity, eve: Identity, seed: int, since: int | None, track: int | None, at_once: int
) -> None:
    chance = random.Random(seed)
    store.write(clear).result()
    for turn in range(3):
        report(store, draw(chance, 60, ("a", "b")), reporter, NOW + turn)
        report(store, draw(chance, 30, (None, "a", "c")), eve, NOW + turn)
        store.write(lambda: blocks.roll_up(chance.randrange(40))).result()
    if since == 0:  # as if an earlier version had stored them
        store.write(lambda: run("UPDATE play SET reported_at = NULL WHERE reported_at = ?", NOW)).result()
    before = store.read(stored).result()
    reports = Reports(eve.user_id, None if since is None else NOW + since, track)
    expected = Counter(
        {
            row: number
            for row, number in before.items()
            if row[0] == eve.user_id
            and (track is None or row[1] == track)
            and (since is None or (row[3] is not None and row[3] >= NOW + since))
        }
    )
    assert store.read(partial(account_plays.count, reports, 1000)).result() == expected.total()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(withdrawal, "TAKEN_AT_ONCE", at_once)
        assert withdraw(store, reports) == expected.total()
    assert store.read(stored).result() == before - expected
    require_sound(store)


def test_withdrawn_plays_may_be_reported_again(store: Store, eve: Identity) -> None:
    heard = [ReportedPlay(1, NOW - at * MINUTE, None, client_id=str(at)) for at in range(5)]
    assert report(store, heard, eve).accepted == 5
    assert withdraw(store, Reports(eve.user_id)) == 5
    assert report(store, heard, eve).accepted == 5
    require_sound(store)


def test_plays_of_pruned_days_stay_in_the_figures(store: Store, eve: Identity) -> None:
    times = [NOW, (TODAY - 30) * DAY, (TODAY - 30) * DAY - 1, NOW - 90 * DAY]
    report(store, [ReportedPlay(1, time, "a") for time in times], eve)
    retention.prune(store, 30, now=NOW, on_progress=quiet)
    summary = store.read(lambda: account_plays.summarize(Reports(eve.user_id))).result()
    assert (summary.plays, summary.kept_from, summary.days) == (2, TODAY - 30, [TODAY - 30, TODAY])
    assert withdraw(store, Reports(eve.user_id)) == 2
    assert store.read(lambda: fetch("SELECT plays FROM track_plays WHERE track_id = 1")).result() == [(2,)]
    require_sound(store)


def test_the_list_begins_with_the_newest_report(store: Store, reporter: Identity, eve: Identity) -> None:
    report(store, [ReportedPlay(1, NOW - DAY, None), ReportedPlay(3, NOW - 2 * DAY, "a")], eve, NOW)
    report(store, [ReportedPlay(2, NOW - 3 * DAY, "account:2")], eve, NOW + 1)
    report(store, [ReportedPlay(2, NOW, "a")], reporter, NOW + 2)
    store.write(lambda: run("UPDATE play SET reported_at = NULL WHERE track_id = 3")).result()
    expected = [
        AccountPlay(NOW - 3 * DAY, 2, "Track", own=False, reported_at=NOW + 1),
        AccountPlay(NOW - DAY, 1, "Track", own=True, reported_at=NOW),
        AccountPlay(NOW - 2 * DAY, 3, "Track", own=False, reported_at=None),
    ]

    def newest(limit: int = 9, **which: int) -> list[AccountPlay]:
        return store.read(lambda: account_plays.newest(Reports(eve.user_id, **which), limit)).result()

    assert newest() == expected
    assert newest(2) == expected[:2]
    assert newest(since=NOW) == expected[:2]
    assert newest(since=NOW + 1) == expected[:1]
    assert newest(track=3) == expected[2:]


@pytest.mark.only_on("sqlite")
def test_lists_and_counts_read_the_index_of_the_reporter(store: Store) -> None:
    chosen = account_plays.INDEXED.format(chosen=Reports(1, NOW).selection().condition)
    queries = [
        account_plays.ROWS.format(chosen=chosen, known="NOT NULL").replace("LIMIT ?", "LIMIT 5"),
        *(each.format(chosen=chosen) for each in (account_plays.TRACKS, account_plays.DAYS)),
    ]
    for query in queries:
        plan = store.read(partial(fetch, f"EXPLAIN QUERY PLAN {query}", 1, NOW, 0)).result()
        assert any("play USING" in row[3] and "INDEX play_of_reporter" in row[3] for row in plan), plan


def test_a_withdrawal_in_several_transactions_is_logged_at_its_begin_and_at_its_end(
    store: Store, eve: Identity, bounds: Bounds
) -> None:
    bounds(taken_at_once=2)
    report(store, [ReportedPlay(1 + at % 2, NOW - at * DAY, "a") for at in range(5)], eve)
    summary = store.read(lambda: account_plays.summarize(Reports(eve.user_id))).result()
    actor = Administrator(1)
    account_plays.withdraw(store, Reports(eve.user_id), summary, now=NOW, actor=actor, on_progress=quiet)
    events = store.read(lambda: security_events.find(limit=9)).result()
    about = "5 plays of 2 tracks, played from 2026-02-25 to 2026-03-01"
    assert [event[1:] for event in events if event.kind.startswith("plays.")] == [
        ("plays.withdrawal_started", eve.user_id, None, "admin", about, 1),
        ("plays.withdrawn", eve.user_id, None, "admin", about, 1),
    ]


def test_a_withdrawal_that_another_one_forestalled_is_no_event(store: Store, eve: Identity) -> None:
    report(store, [ReportedPlay(1, NOW - at * DAY, "a") for at in range(4)], eve)
    summary = store.read(lambda: account_plays.summarize(Reports(eve.user_id))).result()
    for expected in (4, 0):
        taken = account_plays.withdraw(store, Reports(eve.user_id), summary, now=NOW, actor="cli", on_progress=quiet)
        assert taken == expected
    events = store.read(lambda: security_events.find(limit=9)).result()
    assert [event.kind for event in events if event.kind.startswith("plays.")] == ["plays.withdrawn"]
    require_sound(store)


def test_imported_plays_and_fixtures_are_of_no_account(store: Store, eve: Identity) -> None:
    row = PlayRow(NOW // SLOT, 1, 1, b"", NOW, None, 0, 7)
    store.write(lambda: ingest.record([row])).result()
    assert withdraw(store, Reports(eve.user_id)) == 0
    assert store.read(Play.select().count).result() == 1


# The numbers of own plays by day equal the single plays, whatever is reported, withdrawn, deleted or moved.


def own(store: Store, subject: Subject, first: int, last: int) -> int:
    def read() -> int:
        return Reader(Window("", first, last + 1), all_time=False).own_plays(*subject)

    return store.read(read).result()


def test_own_plays_of_a_period_are_those_of_its_days_and_tracks(store: Store, reporter: Identity) -> None:
    other = store.write(lambda: account(reports_plays=True, email="eve@label.test")).result()
    chance = random.Random(1)
    heard = [
        (ReportedPlay(1 + chance.randrange(3), NOW - at * 7 * SLOT * 60, chance.choice((None, None, "a"))), actor)
        for at in range(90)
        for actor in (reporter, other)
    ]
    for actor in (reporter, other):
        mine = [play for play, by in heard if by is actor]
        assert report(store, mine, actor).accepted > 80
        report(store, mine, actor)
    stored = [play for play, _ in heard if play.listener is None]
    for kind, subject, tracks in SUBJECTS:
        for days in (0, 1, 4, 13):
            expected = [play for play in stored if play.track_id in tracks and play.played_at // DAY >= TODAY - days]
            assert own(store, Subject(kind, subject), TODAY - days, TODAY) == len(expected)
    require_sound(store)

    reports = Reports(other.user_id)
    summary = store.read(partial(account_plays.summarize, reports)).result()
    account_plays.withdraw(store, reports, summary, now=NOW, actor="cli", on_progress=quiet)
    left = [play for play, by in heard if by is reporter and play.listener is None]
    assert own(store, Subject(ARTIST, 2), TODAY - 20, TODAY) == sum(play.track_id > 1 for play in left)
    require_sound(store)

    retention.prune(store, 2, now=NOW, on_progress=quiet)
    assert own(store, Subject(ALBUM, 1), TODAY - 20, TODAY) == sum(play.track_id < 3 for play in left)
    require_sound(store)
