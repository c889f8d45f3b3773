"""Listening, hours, milestones and releases of a whole scope equal a count of single plays, each counted once."""

import random
from datetime import date
from functools import partial
from itertools import product

import pytest

from musicsvc.clock import DAY
from musicsvc.errors import Invalid
from musicsvc.server.shapes import listening as shapes
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import overview
from musicsvc.store.insights.listening import milestones, releases
from musicsvc.store.insights.listening.releases import Compared
from musicsvc.store.insights.overview import Overview
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Album, TrackArtist
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import to_date
from tests.conftest import NOW
from tests.support import listening_oracle as oracle
from tests.support.listening_world import TimedWorld
from tests.support.oracle import PlayOf

# The windows before end within a day, leave days out before the window, or have none; March 2026 began this morning.
PERIODS = ("7-days", "30-days", "this-month", "2026-02", "2026-Q1", "2026", "2025-12", "all")
DURATIONS = (None, 0, 9_000, 15_000, 40_000, 100_000, 150_000, 250_000)


@pytest.fixture
def world(store: Store) -> TimedWorld:
    """Some hundred plays of the last 150 days, partly rolled up; track 2 has no artist."""
    world, chance = TimedWorld.create(store, NOW), random.Random(7)
    first, second = world.made.albums

    def unit() -> None:
        TrackArtist.delete().where(TrackArtist.track == world.made.tracks[2]).execute()
        Album.update(release_date="2026-01-20").where(Album.id == first).execute()
        Album.update(release_date="2026-02-20").where(Album.id == second).execute()

    store.write(unit).result()
    world.made.past.by_artist[world.made.artists[1]].remove(world.made.tracks[2])
    for _ in range(2):
        days = [int(chance.triangular(0, 150, 20)) for _ in range(250)]
        world.play(
            PlayOf(
                world.made.tracks[chance.choice((0, 0, 0, 1, 2, 3))],
                NOW - day * DAY - chance.randrange(DAY),
                f"l{int(chance.triangular(0, 90, 90 - day / 2))}"
                if chance.random() < 0.9
                else f"new {chance.random()}",
                chance.choice(DURATIONS),
            )
            for day in days
        )
        world.roll_up()
    return world


def scopes(world: TimedWorld) -> dict[Scope, list[int]]:
    """Return scopes with their tracks: of several artists (with tracks of nobody and without), and of one."""
    made = world.made
    without = [each for each in made.tracks if each != made.tracks[2]]
    return {
        Scope(): made.tracks,
        Scope(manager=made.manager.user_id): without,
        Scope(artist=made.artists[0]): made.past.by_artist[made.artists[0]],
    }


def build(world: TimedWorld, scope: Scope, period: str, compared: Compared = releases.NEWEST) -> Overview:
    window = periods.window(period, NOW)
    return world.store.read(partial(overview.build_for_print, scope, window, NOW, compared)).result()


def test_listening_and_hours_count_a_play_and_a_listener_once(world: TimedWorld) -> None:
    returning: dict[str, int] = {}  # of the last scope
    for period, (scope, tracks) in product(PERIODS, scopes(world).items()):
        window = periods.window(period, NOW)
        days = to_date(window.first), to_date(window.end - 1)
        plays = [play for play in world.plays.values() if play.track in tracks]
        details = build(world, scope, period).details
        assert details is not None
        assert details.hours.plays == oracle.hours(plays, *days)
        found = shapes.listening(details.listening)
        del found["period"]
        assert found == oracle.listening(plays, world.lengths, *days)
        returning |= {period: found["returning_listeners"]}
    assert [period for period, count in returning.items() if not count] == ["this-month", "all"]


def test_milestones_are_those_of_the_most_played(world: TimedWorld) -> None:
    plays = world.subjects()
    for scope in scopes(world):
        found = build(world, scope, "30-days")
        assert found.details is not None
        tops = [row.ranked for rows in (found.top_artists, found.top_albums, found.top) for row in rows[:5]]
        assert [(each.subject.id, each.name) for each in found.details.milestones] == [
            (row.id, row.name) for row in tops
        ]
        for each in found.details.milestones:
            assert each.milestones == world.store.read(partial(milestones.build, each.subject)).result()
            assert shapes.milestones(each.milestones)["best_day"] == oracle.milestones(plays[each.subject])["best_day"]


def test_the_newest_albums_are_compared_unless_others_are_chosen(world: TimedWorld) -> None:
    first, second = world.made.albums
    scope = Scope(manager=world.made.manager.user_id)

    def ids(period: str, compared: Compared = releases.NEWEST) -> list[int]:
        details = build(world, scope, period, compared).details
        assert details is not None
        return [each.id for each in details.releases]

    assert ids("30-days") == [second, first]
    assert build(world, Scope(), "30-days").details.releases[0].id == second  # type: ignore[union-attr]
    assert ids("2026-01") == [first]  # the other one came out later
    assert ids("2025-12") == []
    assert ids("2025-12", Compared((first, second), 5)) == [first, second]
    details = build(world, scope, "2025-12", Compared((first, second), 5)).details
    assert details is not None
    played = {
        album: [play for play in world.plays.values() if play.track in world.made.past.on_album[album]]
        for album in (first, second)
    }
    dates = {first: date(2026, 1, 20), second: date(2026, 2, 20)}
    shaped = shapes.releases(details.releases, details.days)
    assert shaped["days"] == 5
    for each in shaped["releases"]:
        assert each["points"] == oracle.release(played[each["id"]], dates[each["id"]], 5, date(2026, 3, 1))
        assert len(each["points"]) == 5


def test_an_album_of_somebody_else_cannot_be_chosen(world: TimedWorld) -> None:
    scope = Scope(artist=world.made.artists[1])
    with pytest.raises(Invalid) as failure:
        build(world, scope, "30-days", Compared((world.made.albums[1], world.made.albums[0])))
    assert failure.value.errors == {"releases": f"Album {world.made.albums[0]} is not one of the report's albums."}


def test_albums_that_nobody_played_are_left_out_unless_chosen(world: TimedWorld) -> None:
    silent = world.store.write(lambda: Album.create(name="Silent", release_date="2026-02-25", created_at=0).id).result()
    found = build(world, Scope(), "30-days").details
    assert found is not None
    assert [each.id for each in found.releases] == [world.made.albums[1], world.made.albums[0]]
    found = build(world, Scope(), "30-days", Compared((silent,))).details
    assert found is not None
    assert [len(each.points) for each in found.releases] == [5]
