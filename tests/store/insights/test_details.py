"""Listening, hours, milestones and releases of a whole scope equal a count of single plays, each counted once."""

import random
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import product
from zoneinfo import ZoneInfo

import pytest

from musicsvc.clock import DAY, HOUR
from musicsvc.errors import Invalid
from musicsvc.server.shapes import listening as shapes
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import overview, realtime
from musicsvc.store.insights.listening import local_hours, milestones, releases
from musicsvc.store.insights.listening.releases import Compared
from musicsvc.store.insights.overview import Overview
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Album, TrackArtist
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import SLOT, Window, to_date
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import ARTIST, Subject
from tests.conftest import NOW
from tests.support import databases
from tests.support import listening_oracle as oracle
from tests.support.listening_world import Catalog, TimedWorld, catalog
from tests.support.oracle import PlayOf
from tests.support.play_counts import roll_up
from tests.support.query_count import instructions

# The windows before end within a day, leave days out before the window, or have none; March 2026 began this morning.
PERIODS = ("7-days", "30-days", "this-month", "2026-02", "2026-Q1", "2026", "2025-12", "all")
DURATIONS = (None, 0, 9_000, 15_000, 40_000, 100_000, 150_000, 250_000)


@databases.prefilling
def prefilled(store: Store) -> TimedWorld:
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


@pytest.fixture
def world(prefilled: databases.Filled[TimedWorld], store: Store) -> TimedWorld:
    return prefilled.made.on_copy(store)


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


@pytest.mark.slow
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


# Hours of the week in a time zone equal a count of single plays by their local time.

TODAY = NOW // DAY
ALL = Window("", 0, TODAY + 1)
WINDOWS = [ALL, Window("", TODAY - 400, TODAY - 3), Window("", TODAY - 1, TODAY + 1)]
# Minutes after the full hour at which hours begin, by zone.
ZONES = {
    "UTC": 0,
    "Europe/Berlin": 0,
    "America/New_York": 0,
    "Australia/Sydney": 0,
    "Asia/Kolkata": 30,
    "America/St_Johns": 30,
    "Asia/Kathmandu": 45,
    "Pacific/Chatham": 45,
}


@pytest.fixture
def made(store: Store) -> Catalog:
    """Two years of plays, and one in each hour of days on which clocks change in Europe, America and Australia."""
    chance = random.Random(4)

    def fill() -> Catalog:
        made = catalog(NOW)
        made.add_plays(
            (made.tracks[number % 2], NOW - chance.randrange(800 * 24 * 120) * SLOT, str(number))
            for number in range(900)
        )
        while blocks.roll_up(100):
            pass
        for month, day in ((3, 30), (10, 26), (3, 9), (11, 2), (4, 6), (10, 5)):
            start = int(datetime(2025, month, day, tzinfo=UTC).timestamp()) * 10**6
            made.add_plays((made.tracks[0], start + hour * HOUR, str(hour)) for hour in range(24))
        return made

    return store.write(fill).result()


def expected(made: Catalog, window: Window, zone: str) -> list[list[int]]:
    rows = [[0] * 24 for _ in range(7)]
    for play in made.past.plays:
        if window.first <= play.at // DAY < window.end:
            at = datetime.fromtimestamp(play.at // 10**6, ZoneInfo(zone)) - timedelta(minutes=ZONES[zone])
            rows[at.weekday()][at.hour] += 1
    return rows


@pytest.mark.parametrize("zone", ZONES)
def test_plays_are_counted_by_their_local_hour(store: Store, made: Catalog, zone: str) -> None:
    subject = Subject(ARTIST, made.artists[0])
    for window in WINDOWS:
        found = store.read(partial(local_hours.load, subject, window, zone)).result()
        assert [[*row] for row in found.hours.plays] == expected(made, window, zone)
        assert not found.mixed
        assert not any(map(any, found.hours.plays)) or found.minute == ZONES[zone]


def test_a_zone_that_changes_by_half_an_hour_is_said_to_be_mixed(store: Store, made: Catalog) -> None:
    subject = Subject(ARTIST, made.artists[0])
    found = store.read(partial(local_hours.load, subject, ALL, "Australia/Lord_Howe")).result()
    assert (found.minute, found.mixed) == (0, True)
    assert sum(map(sum, found.hours.plays)) == len(made.past.plays)


def test_zones_are_places_and_a_database_without_plays_has_none(store: Store) -> None:
    assert {"UTC", *ZONES} <= {*local_hours.zones()}
    assert not {"posixrules", "Etc/GMT+5", "EST", "America"} & {*local_hours.zones()}
    found = store.read(partial(local_hours.load, Subject(ARTIST, 1), ALL, "Asia/Kolkata")).result()
    assert found.hours.plays == [[0] * 24] * 7


# The newest plays of a track are found, however long ago they were, also on days when nothing else was played.


def test_the_newest_plays_are_found_on_days_without_other_plays(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    track, other = made.tracks[4], made.tracks[2]
    times = [NOW - days * DAY for days in (9, 10, 399, 465, 1999)]
    heard = [(track, at, "ann") for at in times] + [(other, at - 2 * DAY, "ben") for at in times[:3]]
    store.write(partial(made.add_plays, heard)).result()
    roll_up(store)

    for limit in (1, 2, 4, 9):
        found = store.read(partial(realtime.newest, track, limit)).result()
        assert found == [realtime.LoggedPlay(at, "opaque:ann") for at in times[:limit]]


@pytest.mark.only_on("sqlite")
def test_the_newest_plays_are_read_without_the_others_of_their_day(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    (track, *_), first = made.tracks, NOW // DAY * DAY - 9 * DAY

    def read() -> None:
        assert len(realtime.newest(track, 20)) == 20

    def play(numbers: range) -> None:
        store.write(partial(made.add_plays, [(track, first + number * SLOT, "ann") for number in numbers])).result()
        roll_up(store)

    play(range(40))
    few = store.read(partial(instructions, read)).result()
    play(range(40, 1000))
    assert store.read(partial(instructions, read)).result() < few + 100
