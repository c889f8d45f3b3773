"""The overview of a scope: the numbers of tracks, albums and artists, and their order."""

import random
from functools import partial

import pytest

from musicsvc.clock import DAY, SECOND, MovableClock
from musicsvc.server.shapes import insights
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import figures, overview
from musicsvc.store.insights.listening import first_plays
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Track, TrackArtist
from musicsvc.store.plays import retention
from musicsvc.store.plays.periods import TIMEFRAMES, Window, window
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import KINDS, Subject
from tests.support.listening_world import Catalog, catalog
from tests.support.play_counts import roll_up

WEEK = window("7-days", 0)


def test_the_ten_tracks_and_the_five_albums_and_artists_that_were_played_most(
    store: Store, clock: MovableClock
) -> None:
    now = clock.now()

    def fill() -> list[int]:
        made = [catalog(now) for _ in range(3)]
        tracks = [track for each in made for track in each.tracks]
        made[0].add_plays((track, now - DAY, str(who)) for plays, track in enumerate(tracks, 1) for who in range(plays))
        return tracks

    tracks = store.write(fill).result()
    days = window("7-days", now)
    found = store.read(lambda: overview.build_for_print(Scope(), days, now)).result()
    assert [(row.ranked.id, row.ranked.plays) for row in found.top] == [
        (tracks[each], each + 1) for each in range(14, 4, -1)
    ]
    for rows in (found.top_albums, found.top_artists):
        plays = [row.ranked.plays for row in rows]
        assert (len(plays), plays) == (5, sorted(plays, reverse=True))


def test_an_overview_is_named_after_its_artist_or_its_account(store: Store, clock: MovableClock) -> None:
    made = store.write(lambda: catalog(clock.now())).result()
    days = window("7-days", clock.now())
    scopes = (Scope(), Scope(manager=made.manager.user_id), Scope(artist=made.artists[1]))
    names = [store.read(partial(overview.build, scope, days)).result().name for scope in scopes]
    assert names == [None, "manager0", "Artist 1"]


def test_an_overview_counts_a_play_once_however_many_artists_or_none_its_track_has(
    store: Store, clock: MovableClock
) -> None:
    chance = random.Random(6)
    now = clock.now()

    def fill() -> tuple[Catalog, Catalog]:
        one, other = catalog(now), catalog(now)
        TrackArtist.delete().where(TrackArtist.track == one.tracks[0]).execute()  # a track of nobody
        for each in (one, other):
            each.past.by_artist[0] = each.tracks  # no artist's id: everything together
            each.add_plays(
                (chance.choice(each.tracks), now - min(int(chance.expovariate(1 / 70)), 780) * DAY, str(who % 40))
                for who in range(500)
            )
            each.give([(track, now - DAY) for track in each.tracks[:2]], [(each.tracks[3], now)] * 3)
        other.past.plays += one.past.plays
        other.past.likes += one.past.likes
        other.past.reposts += one.past.reposts
        other.past.by_artist[0] = one.tracks + other.tracks
        while blocks.roll_up(100):
            pass
        return one, other

    one, other = store.write(fill).result()
    for made, scope, tracks in (
        (other, Scope(), None),
        (one, Scope(manager=one.manager.user_id), one.tracks[1:]),
        (one, Scope(artist=one.artists[0]), [one.tracks[1], one.tracks[3]]),
    ):
        if tracks is not None:
            made.past.by_artist[0] = tracks
        for timeframe, period in TIMEFRAMES.items():
            found = store.read(partial(overview.build, scope, window(period, now))).result()
            assert insights.figures(found.figures) == made.past.figures("artist", 0, period, now)
            assert insights.chart(found.chart) == made.past.chart("artist", 0, timeframe, now)


@pytest.mark.parametrize("artists", [1, 3])
def test_a_printed_overview_has_the_days_before_and_the_newest_day_with_plays(
    store: Store, clock: MovableClock, artists: int
) -> None:
    now = clock.now()

    def fill() -> Catalog:
        made = catalog(now)
        made.add_plays(
            (track, now - day * DAY, f"{who}")
            for number, track in enumerate(made.tracks)
            for day in (9, 9 + number, 12)
            for who in range(day - number)
        )
        # On the day that the window before shares with the part of today that is not over.
        made.add_plays((made.tracks[0], now - 7 * DAY + at, "somebody") for at in (-SECOND, SECOND))
        return made

    made = store.write(fill).result()
    scope = Scope(artist=made.artists[0]) if artists == 1 else Scope(made.manager.user_id)
    week, empty = window("7-days", now), window("7-days", now + 60 * DAY)
    found = store.read(lambda: overview.build_for_print(scope, week, now)).result()
    earlier = store.read(lambda: overview.build(scope, week.before)).result()

    assert [tuple(each) for each in found.before[:-1]] == [point[:2] for point in earlier.chart.points]
    assert found.before[-1] == (1, 1)
    assert sum(each.plays for each in found.before) > 0
    for days in (week, empty):
        late = store.read(partial(overview.build_for_print, scope, days, now)).result()
        assert late.last_played == week.end - 8


def test_the_newest_day_with_plays_may_be_in_a_month_whose_days_are_added_up(store: Store, clock: MovableClock) -> None:
    now = clock.now()

    def fill() -> Catalog:
        made = catalog(now)
        made.add_plays([(made.tracks[2], now - days * DAY, "somebody") for days in (150, 90, 96)])
        made.add_plays([(made.tracks[4], now, "somebody")])
        return made

    made = store.write(fill).result()
    roll_up(store)
    week = window("7-days", now)
    assert now // DAY - 90 < store.read(blocks.progress).result().open_day
    for artist, day in ((1, now // DAY - 90), (0, None), (2, None)):  # artist 2 was played today
        scope = Scope(artist=made.artists[artist])
        assert store.read(partial(overview.build_for_print, scope, week, now)).result().last_played == day


# The day of the first play is that of the oldest play, and stands instead of growth where that would mislead.


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
            of_one = store.read(partial(figures.figures, Subject(kind, each), WEEK)).result()
            assert of_one.first_day == day
    assert store.read(lambda: first_plays.by_id(1, [])).result() == {}


@pytest.mark.slow
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
        days = window("7-days", clock.now())
        found = {build(scope, days).figures.first_day for build in (overview.build, whole_report)}
        (day,) = found
        return day

    def whole_report(scope: Scope, days: Window) -> overview.Overview:
        return overview.build_for_print(scope, days, clock.now())

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
