"""The day of the first play is that of the oldest play, and stands instead of growth where that would mislead."""

import random
from functools import partial

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import scopes
from musicsvc.store.insights.listening import first_plays
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Track
from musicsvc.store.plays import retention
from musicsvc.store.plays.periods import window
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import KINDS, Subject
from tests.support.listening_world import Catalog, catalog
from tests.support.play_counts import roll_up


@pytest.fixture
def made(store: Store, clock: MovableClock) -> Catalog:
    """Tracks 0 to 3 since different days of the last two years; those of track 1 are not in a block of 32 days."""
    now, chance = clock.now(), random.Random(11)

    def fill() -> Catalog:
        made = catalog(now)
        for track, oldest in ((0, 203), (1, 2), (2, 731), (3, 64)):
            days = [oldest, *(chance.randrange(oldest + 1) for _ in range(9))]
            made.add_plays((made.tracks[track], now - day * DAY, f"l{day}") for day in days)
        return made

    return store.write(fill).result()


def expected(made: Catalog, noun: str, number: int) -> int | None:
    tracks = made.past.tracks(noun, number)
    return min((play.at // DAY for play in made.past.plays if play.track in tracks), default=None)


def check(store: Store, made: Catalog) -> None:
    for noun, kind in KINDS.items():
        ids = {"track": made.tracks, "album": made.albums, "artist": made.artists}[noun]
        days = {each: expected(made, noun, each) for each in ids}
        found = store.read(partial(first_plays.by_id, kind, ids)).result()
        assert found == {each: day for each, day in days.items() if day is not None}
        for each, day in days.items():
            assert store.read(partial(first_plays.of_subject, Subject(kind, each))).result() == day
    assert store.read(lambda: first_plays.by_id(1, [])).result() == {}


def test_the_first_play_is_the_oldest_before_and_after_months_are_added_up_and_plays_deleted(
    store: Store, clock: MovableClock, made: Catalog
) -> None:
    check(store, made)
    while store.write(partial(blocks.roll_up, 5)).result():
        check(store, made)
    check(store, made)
    retention.prune(store, 3, now=clock.now(), on_progress=lambda _done, _all: None)
    check(store, made)
    late = [(made.tracks[1], clock.now() - 2 * DAY - DAY, "late"), (made.tracks[4], clock.now(), "new")]
    store.write(lambda: made.add_plays(late)).result()
    check(store, made)


def test_the_first_play_of_a_report_is_that_of_its_oldest_track_also_of_one_without_artist(
    store: Store, clock: MovableClock, made: Catalog
) -> None:
    roll_up(store)

    def first(scope: Scope) -> int | None:
        return first_plays.of_parts(list(scopes.parts(scope, scope.ids(KINDS["artist"]))))

    whole, artist = Scope(), Scope(artist=made.artists[0])
    today = clock.now() // DAY
    assert store.read(lambda: (first(whole), first(artist))).result() == (today - 731, today - 203)

    def add_alone() -> None:
        alone = Track.create(name="Alone", duration=0, created_at=1).id
        made.add_plays([(alone, clock.now() - 900 * DAY, "somebody")])

    store.write(add_alone).result()
    assert store.read(lambda: first(whole)).result() == today - 900
    empty = store.write(lambda: catalog(clock.now())).result()
    assert store.read(lambda: first(Scope(artist=empty.artists[0]))).result() is None


def test_the_first_play_stands_instead_of_growth_only_after_the_start_of_the_earlier_window(
    clock: MovableClock,
) -> None:
    week = window("7-days", clock.now())
    start = week.before.first
    assert start == week.first - 7
    for first, shown in ((start - 1, None), (start, None), (start + 1, start + 1), (week.first, week.first)):
        assert first_plays.instead_of_growth(week, first) == shown
    assert first_plays.instead_of_growth(week, None) is None
    assert first_plays.instead_of_growth(window("all", clock.now()), week.first) is None
