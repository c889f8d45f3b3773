"""The recount from single plays of `insights explain`: equal to the figures, and exact about what differs."""

import random
from functools import partial

import pytest

from musicsvc.clock import DAY, isoformat
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import overview
from musicsvc.store.insights.listening.milestones import BestDay, Milestone, Milestones
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from musicsvc.store.recounting import explain
from musicsvc.store.recounting.explain import Explanation, Kept
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.listening_world import TimedWorld
from tests.support.oracle import PlayOf

TODAY = NOW // DAY
PERIODS = ("7-days", "30-days", "2026-02", "all")
DURATIONS = (None, 0, 9_999, 15_000, 30_000, 100_000, 250_000)

DAMAGES = {
    "no plays": "UPDATE play_count SET plays = 0",
    "more plays than hours": "UPDATE play_count SET plays = 1000 * plays",
    "hours of tracks alone": f"""
        UPDATE play_count SET histogram = CASE {counts.KIND} WHEN {TRACK} THEN X'0000' ELSE X'' END
    """,
}


@pytest.fixture
def world(store: Store) -> TimedWorld:
    """A thousand plays of the last hundred days, some without duration, some of a track without length."""
    world, chance = TimedWorld.create(store, NOW), random.Random(5)
    for album, back in zip(world.made.albums, (64, 6), strict=True):
        world.release(album, TODAY - back)
    world.play(
        PlayOf(
            world.made.tracks[chance.choice((0, 0, 0, 1, 2, 3))],
            NOW - int(chance.triangular(0, 100 * DAY, 0)),
            f"l{chance.randrange(150)}",
            chance.choice(DURATIONS),
        )
        for _ in range(1_000)
    )
    world.roll_up()
    return world


def counted(world: TimedWorld, subject: Subject, period: str = "all") -> Explanation:
    return world.store.read(partial(explain.build, subject, periods.window(period, NOW), NOW)).result()


@pytest.mark.slow
def test_a_recount_gives_the_figures_of_the_api(world: TimedWorld) -> None:
    for subject, plays in world.subjects().items():
        for period in PERIODS:
            found = counted(world, subject, period)
            assert found.counted.details == found.served.details
            assert found.differences == []
            assert (found.counted.details.release is None) == (subject.kind != ALBUM)
            days = periods.window(period, NOW)
            within = [play for play in plays if days.starts <= play.at < days.ends]
            timed = [play for play in within if play.duration_ms is not None]
            assert found.recounted.without_duration == len(within) - len(timed)
            assert found.recounted.without_length == sum(not world.lengths[play.track] for play in timed)


def test_each_figure_that_differs_has_a_name(world: TimedWorld) -> None:
    found = counted(world, Subject(ALBUM, world.made.albums[1]), "30-days")
    right = found.counted.details
    plays = right.hours.plays
    assert right.release is not None
    listening = right.listening._replace(
        plays_with_duration=1,
        skips=2,
        mean=3.5,
        median=4.5,
        plays_per_listener=5.5,
        new_listeners=6,
        returning_listeners=7,
    )
    hours = right.hours._replace(plays=[[one + 1 for one in row] for row in plays])
    reached = Milestones([Milestone(100, 8_000_000), Milestone(1_000, 9_000_000)], BestDay(10, 11))
    release = right.release._replace(points=right.release.points[:2])
    served = found.served._replace(details=explain.Details(listening, hours, reached, release))
    of = right.listening
    within = [
        ("plays with a duration", 1, of.plays_with_duration),
        ("skips", 2, of.skips),
        ("completion", 3.5, of.mean),
        ("median completion", 4.5, of.median),
        ("plays per listener", 5.5, of.plays_per_listener),
        *(
            (f"plays on {name}s at {hour:02}:00", plays[day][hour] + 1, plays[day][hour])
            for day, name in enumerate(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"))
            for hour in range(24)
        ),
    ]
    best, points = right.milestones.best_day, right.release
    assert best is not None
    assert points is not None
    reached_at = {f"play {each.number:,}": isoformat(each.at) for each in right.milestones.plays}
    assert list(reached_at) == ["play 100"]
    ever = [
        ("new listeners", 6, of.new_listeners),
        ("returning listeners", 7, of.returning_listeners),
        ("best day", "1970-01-11, 11 plays", f"{to_date(best.day)}, {best.plays} plays"),
        ("play 100", "1970-01-01T00:00:08.000000Z", reached_at["play 100"]),
        ("play 1,000", "1970-01-01T00:00:09.000000Z", None),
        *(
            (f"{name} on day {point.day} since the release", None, getattr(point, name))
            for point in points.points[2:]
            for name in ("plays", "listeners")
        ),
    ]
    deleted = Kept(within=True, before=True, ever=False), Kept(within=False, before=False, ever=False)
    assert explain.differences(served, found.counted, found.kept) == within + ever
    assert explain.differences(served, found.counted, deleted[0]) == within
    assert explain.differences(served, found.counted, deleted[1]) == []


@pytest.mark.on_both
@pytest.mark.slow
def test_a_recount_of_many_tracks_gives_the_same(world: TimedWorld, bounds: Bounds) -> None:
    found = {subject: counted(world, subject) for subject in world.subjects()}
    bounds(many_tracks=0)
    assert found == {subject: counted(world, subject) for subject in found}


@pytest.mark.slow
def test_wrong_counts_change_the_figures_of_the_api_but_not_the_recount(world: TimedWorld) -> None:
    album = Subject(ALBUM, world.made.albums[1])
    right = counted(world, album)
    wrong = "UPDATE play_count SET plays = plays + 1 WHERE key = ?"
    world.store.write(partial(sql.run, wrong, counts.key(counts.DAY, TODAY - 6, *album))).result()
    found = counted(world, album)
    assert found.counted == right.counted
    assert right.counted.details.release is not None
    plays = right.counted.details.release.points[0].plays
    assert found.differences[-1] == ("plays on day 0 since the release", plays + 1, plays)
    world.store.write(partial(sql.run, "DELETE FROM play_count")).result()
    assert counted(world, album).counted == right.counted


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_counts_are_compared_and_reported_however_wrong_they_are(world: TimedWorld, damage: str) -> None:
    world.store.write(partial(sql.run, damage)).result()
    artist = Subject(ARTIST, world.made.artists[0])
    assert counted(world, artist).differences
    window = periods.window("all", NOW)
    for scope in (Scope(), Scope(artist=artist.id)):
        world.store.read(partial(overview.build_for_print, scope, window, NOW)).result()
