"""Ingestion of plays: accepted, repeated and refused ones; figures do not depend on their order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, MINUTE, SECOND
from musicsvc.store.accounts import tokens, users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Listener, PlayDay, Track, TrackArtist, TrackPlays
from musicsvc.store.plays import ingest, verify
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.rollups import monthly
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from tests.conftest import NOW
from tests.support import play_counts

TODAY = NOW // DAY
# The kind and id of each subject, and its tracks.
SUBJECTS = (
    (TRACK, 1, [1]),
    (TRACK, 2, [2]),
    (TRACK, 3, [3]),
    (ALBUM, 1, [1, 2]),
    (ARTIST, 1, [1, 2]),
    (ARTIST, 2, [2, 3]),
)
PLAYED = (0, 1, 2, 31, 40, 70)  # days ago
SPANS = [
    *((TODAY - back, TODAY + 1 - back) for back in PLAYED),
    (TODAY - 79, TODAY + 1),
    (0, play_counts.ALL_TIME),
]


def world() -> None:
    """Tracks 1 and 2 on album 1 by artist 1, track 2 by artist 2 as well, track 3 by artist 2 alone, on no album."""
    for number in (1, 2):
        Artist.create(name=f"Artist {number}", created_at=NOW)
    Album.create(name="Album", created_at=NOW)
    for album in (1, 1, None):
        Track.create(name="Track", duration=1, album=album, created_at=NOW)
    for track, artist, position in ((1, 1, 0), (2, 1, 0), (2, 2, 1), (3, 2, 0)):
        TrackArtist.create(track=track, artist=artist, position=position)


def account(*, reports_plays: bool, email: str = "ann@label.test") -> Identity:
    user = users.create(email, api_access=True, now=NOW)
    user.reports_plays = reports_plays
    user.save()
    found = tokens.identify(tokens.digest(tokens.create(user, "test", now=NOW)[1]))
    assert found is not None
    return found


@pytest.fixture
def reporter(store: Store) -> Identity:
    """An account that may report for others, in a store with three tracks."""
    store.write(world).result()
    return store.write(lambda: account(reports_plays=True)).result()


def report(store: Store, heard: Sequence[ReportedPlay], actor: Identity, now: int = NOW) -> ingest.IngestOutcome:
    return store.write(lambda: ingest.report(heard, now=now, actor=actor)).result()


def read_figures() -> dict[Any, tuple[int, list[int]]]:
    """Return plays and listeners of every subject by day, over a long window and of all time; within a unit."""
    found = {}
    for kind, subject, _ in SUBJECTS:
        for first, end in SPANS:
            heard = play_counts.over(kind, subject, first, end)
            found[kind, subject, first, end] = (heard.plays, sorted(heard.listeners))
    return found


def figures(store: Store) -> dict[Any, tuple[int, list[int]]]:
    return store.read(read_figures).result()


def test_plays_count_for_the_track_its_album_and_each_of_its_artists(store: Store, reporter: Identity) -> None:
    heard = [
        ReportedPlay(1, NOW, "a"),
        ReportedPlay(2, NOW, "a"),
        ReportedPlay(2, NOW - DAY, "b"),
        ReportedPlay(3, NOW, "a"),
        ReportedPlay(3, NOW, None),
    ]
    assert report(store, heard, reporter) == ingest.IngestOutcome(accepted=5)
    today, ever = (TODAY, TODAY + 1), (0, play_counts.ALL_TIME)
    found = {key: (count, len(people)) for key, (count, people) in figures(store).items() if key[2:] in {today, ever}}
    assert found == {
        (TRACK, 1, *today): (1, 1),
        (TRACK, 1, *ever): (1, 1),
        (TRACK, 2, *today): (1, 1),
        (TRACK, 2, *ever): (2, 2),
        (TRACK, 3, *today): (2, 2),
        (TRACK, 3, *ever): (2, 2),
        (ALBUM, 1, *today): (2, 1),
        (ALBUM, 1, *ever): (3, 2),
        (ARTIST, 1, *today): (2, 1),
        (ARTIST, 1, *ever): (3, 2),
        (ARTIST, 2, *today): (3, 2),
        (ARTIST, 2, *ever): (4, 3),
    }
    totals = store.read(lambda: {row.track: row.plays for row in TrackPlays.select()}).result()
    assert totals == {1: 1, 2: 2, 3: 2}


def test_each_refusal_has_its_reason_and_the_rest_is_accepted(store: Store, reporter: Identity) -> None:
    alone = store.write(lambda: account(reports_plays=False, email="bob@label.test")).result()
    heard = [
        ReportedPlay(9, NOW),
        ReportedPlay(1, NOW, "somebody"),
        ReportedPlay(1, NOW + 5 * MINUTE),
        ReportedPlay(1, NOW + 5 * MINUTE + 1),
        ReportedPlay(1, NOW - 400 * DAY),
        ReportedPlay(1, NOW - 400 * DAY - 1),
    ]
    outcome = report(store, heard, alone)
    assert (outcome.accepted, outcome.repeated) == (2, 0)
    assert outcome.refused == [
        (0, ingest.UNKNOWN_TRACK),
        (1, ingest.FOR_OTHERS),
        (3, ingest.FUTURE),
        (5, ingest.TOO_OLD),
    ]
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


def test_a_day_ends_at_midnight_utc(store: Store, reporter: Identity) -> None:
    midnight = TODAY * DAY
    report(store, [ReportedPlay(1, midnight - 1, "a"), ReportedPlay(1, midnight, "a")], reporter)
    found = figures(store)
    assert (found[TRACK, 1, TODAY - 1, TODAY][0], found[TRACK, 1, TODAY, TODAY + 1][0]) == (1, 1)
    assert found[TRACK, 1, 0, play_counts.ALL_TIME] == (2, [1])


@pytest.mark.parametrize("name", ["a", None])
def test_without_a_clients_id_half_a_minute_holds_one_play(store: Store, reporter: Identity, name: str | None) -> None:
    slot = NOW - NOW % (30 * SECOND)
    first = [
        ReportedPlay(1, slot, name),
        ReportedPlay(1, slot + 30 * SECOND - 1, name),
        ReportedPlay(1, slot + 30 * SECOND, name),
    ]
    outcome = report(store, first, reporter)
    assert (outcome.accepted, outcome.repeated) == (2, 1)
    assert report(store, [ReportedPlay(2, slot, name), ReportedPlay(1, slot, "b")], reporter).accepted == 2


def test_a_clients_id_makes_a_play_and_its_repeat_once_for_each_account(store: Store, reporter: Identity) -> None:
    other = store.write(lambda: account(reports_plays=True, email="bob@label.test")).result()
    first = ReportedPlay(1, NOW, "a", client_id="x")
    assert report(store, [first, first, ReportedPlay(1, NOW, "a", client_id="y")], reporter).accepted == 2
    elsewhere = ReportedPlay(2, NOW - DAY, "b", client_id="x")
    assert (report(store, [elsewhere], reporter).repeated, report(store, [elsewhere], other).accepted) == (1, 1)


TIMES = [NOW - back * DAY + at * 15 * SECOND for back in PLAYED for at in range(4)]
REPORTED = some.lists(
    some.builds(
        ReportedPlay,
        track_id=some.integers(1, 3),
        played_at=some.sampled_from(TIMES),
        listener=some.sampled_from(["a", "b", "c", None]),
        duration_ms=some.none() | some.integers(0, 86_400_000),
        client_id=some.sampled_from([None, None, *map(str, range(30))]),
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
    found: Any = None

    class UndoError(Exception):
        pass

    def unit() -> None:
        nonlocal found
        accepted = 0
        for batch, most in zip_longest(batches, folds):
            accepted += ingest.report(batch or [], now=NOW, actor=actor).accepted
            monthly.roll_up(most or 0)
        found = (read_figures(), accepted)
        raise UndoError

    with pytest.raises(UndoError):
        store.write(unit).result()
    return found


def recounted(heard: Sequence[ReportedPlay]) -> tuple[dict[Any, tuple[int, set[str | None]]], int]:
    """Count the same figures in plain Python."""
    taken = {
        (play.track_id, play.listener, play.client_id or ("slot", play.played_at // (30 * SECOND))): play
        for play in heard
    }
    found = {}
    for kind, subject, tracks in SUBJECTS:
        for first, end in SPANS:
            mine = [play for play in taken.values() if play.track_id in tracks and first <= play.played_at // DAY < end]
            found[kind, subject, first, end] = (len(mine), {play.listener for play in mine})
    return found, len(taken)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(heard=REPORTED.map(alike), chance=some.randoms(use_true_random=False), size=some.integers(1, 20))
def test_figures_are_the_same_whatever_the_order_and_the_batching(
    store: Store, reporter: Identity, heard: list[ReportedPlay], chance: random.Random, size: int
) -> None:
    shuffled = chance.sample(heard, len(heard)) + chance.sample(heard, len(heard) // 2)
    batches = [shuffled[start : start + size] for start in range(0, len(shuffled), size)]
    folds = [chance.randrange(4) for _ in batches]
    whole, pieces = after(store, [heard], reporter), after(store, batches, reporter, folds)
    assert counted(whole) == counted(pieces)
    expected, accepted = recounted(heard)
    assert (whole[1], pieces[1]) == (accepted, accepted)
    assert counted(whole) == {key: (count, len(people)) for key, (count, people) in expected.items()}


def counted(found: Any) -> dict[Any, tuple[int, int]]:
    return {key: (count, len(people)) for key, (count, people) in found[0].items()}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(heard=REPORTED)
def test_listeners_of_several_tracks_are_at_least_the_largest_number_and_at_most_the_sum(
    store: Store, reporter: Identity, heard: list[ReportedPlay]
) -> None:
    found, _ = after(store, [heard], reporter, [9])
    for kind, subject, tracks in SUBJECTS:
        for span in SPANS:
            together = set(found[kind, subject, *span][1])
            each = [set(found[TRACK, track, *span][1]) for track in tracks]
            assert max(map(len, each)) <= len(together) <= sum(map(len, each))
            assert together == set().union(*each)
            assert found[kind, subject, *span][0] == sum(found[TRACK, track, *span][0] for track in tracks)
        by_day = [set(found[kind, subject, *span][1]) for span in SPANS[:-2]]
        assert set(found[kind, subject, *SPANS[-1]][1]) == set().union(*by_day)


def test_monthly_rollups_change_no_figure_and_late_plays_are_added_to_them(store: Store, reporter: Identity) -> None:
    old = [ReportedPlay(track, NOW - back * DAY, f"l{back % 7}") for track in (1, 2, 3) for back in range(80)]
    report(store, old[:100], reporter)
    before = figures(store)
    while store.write(lambda: monthly.roll_up(2)).result():
        pass
    assert figures(store) == before
    mark = store.read(monthly.watermark).result()
    assert mark[:3] == (TODAY // monthly.DAYS, 1, 0)
    report(store, old, reporter)
    expected, _ = recounted(old)
    assert {key: (count, len(people)) for key, (count, people) in figures(store).items()} == {
        key: (count, len(people)) for key, (count, people) in expected.items()
    }


def test_many_plays_of_one_day_stay_exact_and_small(store: Store, reporter: Identity) -> None:
    heard = [ReportedPlay(1, NOW - at * MINUTE, f"l{at % 150}") for at in range(400)]
    for start in range(0, 400, 50):
        report(store, heard[start : start + 50], reporter)
    assert figures(store)[TRACK, 1, TODAY, TODAY + 1] == (400, list(range(1, 151)))
    (size,) = store.read(lambda: [len(row.listeners) for row in PlayDay.select().where(PlayDay.kind == TRACK)]).result()
    assert size < 150 * 4


def test_concurrent_reports_rollups_and_repeats_count_each_play_once(store: Store, reporter: Identity) -> None:
    heard = [ReportedPlay(1 + at % 3, NOW - at * 7 * DAY // 60, f"l{at % 11}") for at in range(600)]

    def unit(start: int) -> int:
        accepted = ingest.report(heard[start : start + 120], now=NOW, actor=reporter).accepted
        monthly.roll_up(2)
        return accepted

    waiting = [store.write(partial(unit, start)) for start in [*range(0, 600, 40)] * 2]
    assert sum(each.result() for each in waiting) == len(heard)
    report = verify.run(store, check=True, on_progress=lambda _done, _total: None)
    assert (report.differing, report.plays) == (0, len(heard))
