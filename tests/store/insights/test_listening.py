"""Listening, hours and milestones equal a count of single plays, whatever happens to plays and tracks."""

from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, HOUR, isoformat
from musicsvc.server.shapes import listening as shapes
from musicsvc.store.engine.store import Store
from musicsvc.store.insights.listening import listening, milestones
from musicsvc.store.models import Play
from musicsvc.store.plays import retention, verify
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY, Window
from musicsvc.store.plays.rollups import counts, histograms
from musicsvc.store.plays.subjects import TRACK, Subject
from tests.conftest import NOW
from tests.support import databases
from tests.support import listening_oracle as oracle
from tests.support.examples import examples
from tests.support.listening_world import TRACKS, TimedWorld
from tests.support.oracle import PlayOf

TODAY = NOW // DAY
WINDOWS = [Window("", TODAY - first, TODAY + 1 - last) for first, last in ((0, 0), (29, 0), (6, 1), (89, 31), (800, 0))]
RELEASED = (TODAY - 64, TODAY - 6)  # two months, so that days are read from rollups, and a week ago
DURATIONS = [None, 0, 7, 9_999, 10_000, 10_001, 29_999, 30_000, 99_999, 100_000, 199_999, 200_000, 10**7]


back = some.one_of(some.sampled_from([0, 1, 6, 7, 29, 30, 31, 63, 64, 65, 89, 90, 800]), some.integers(0, 100))
# A track heard by some listeners, each a minute and a bit after the one before.
party = some.tuples(
    some.integers(0, len(TRACKS) - 2),
    back,
    some.integers(0, DAY - 1),
    some.integers(1, 45),
    some.sampled_from(DURATIONS),
)
steps = some.one_of(
    some.lists(party, min_size=1, max_size=6),
    some.tuples(some.just("import"), some.integers(1, 2), some.lists(party, min_size=1, max_size=6)),
    some.tuples(some.just("undo"), some.integers(1, 2)),
    some.just("roll up"),
    some.tuples(some.just("move"), some.integers(0, 3), some.sampled_from([None, 0, 1])),
    some.tuples(some.just("measure"), some.integers(0, 3), some.sampled_from([0, 15_000, 60_000, 400_001])),
)
window = some.tuples(back, back).map(lambda ends: Window("", TODAY - max(ends), TODAY - min(ends) + 1))
LIGHT = settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def parties(world: TimedWorld, drawn: list[Any]) -> list[PlayOf]:
    return [
        PlayOf(world.made.tracks[track], min((TODAY - back) * DAY + at + n * 61 * 10**6, NOW), f"l{n}", duration)
        for track, back, at, count, duration in drawn
        for n in range(count)
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("weeks_of_rare_plays")
@LIGHT
@given(drawn=some.lists(steps, min_size=1, max_size=8), windows=some.lists(window, max_size=2))
def test_every_figure_equals_a_count_of_single_plays(store: Store, drawn: list[Any], windows: list[Window]) -> None:
    world = TimedWorld.create(store, NOW)
    for album, released in zip(world.made.albums, RELEASED, strict=True):
        world.release(album, released)
    for step in drawn:
        if step == "roll up":
            world.roll_up()
        elif isinstance(step, list):
            world.play(parties(world, step))
        elif step[0] == "import":
            imported = parties(world, step[2])
            world.play(imported, step[1])
            world.play(play._replace(listener="stays", at=play.at - 3 * SLOT) for play in imported[::3])
        elif step[0] == "undo":
            world.undo(step[1])
        elif step[0] == "move":
            world.move(world.made.tracks[step[1]], None if step[2] is None else world.made.albums[step[2]])
        else:
            world.measure({world.made.tracks[step[1]]: step[2]})
    world.undo(1)
    world.check(*windows, WINDOWS[1])
    for album, released in zip(world.made.albums, RELEASED, strict=True):
        for days in (1, 33, TODAY - released, TODAY - released + 2):
            world.check_release(album, days, NOW)
    assert verify.run(store, check=True, on_progress=lambda *_: None).differing == 0


@databases.prefilling
def prefilled(store: Store) -> TimedWorld:
    """Plays of track 0, 130 on each of eighty days, and of track 1, in every hour of some days; partly rolled up."""
    world = TimedWorld.create(store, NOW)
    tracks = world.made.tracks
    for some_days in (range(80, 20, -1), range(21)):
        starts = {back: (TODAY - back) * DAY for back in some_days}
        world.play(
            PlayOf(tracks[0], start + n * 277 * 10**6, f"l{n % (91 - back)}", n * 2_000)
            for back, start in starts.items()
            for n in range(130)
            if start + n * 277 * 10**6 <= NOW
        )
        world.roll_up()
    world.play(PlayOf(tracks[1], (TODAY - 5) * DAY + n * 10**9, "only", 10_000) for n in range(86))
    return world


@pytest.fixture
def world(prefilled: databases.Filled[TimedWorld], store: Store) -> TimedWorld:
    return prefilled.made.on_copy(store)


@pytest.mark.slow
def test_milestones_are_those_of_the_play_at_the_place(world: TimedWorld) -> None:
    (_, plays), *_ = world.subjects().items()
    found = world.store.read(partial(milestones.build, Subject(TRACK, world.made.tracks[0]))).result()
    assert [each.number for each in found.plays] == [100, 1_000, 10_000]
    assert [each.at for each in found.plays] == [sorted(play.at for play in plays)[n - 1] for n in (100, 1_000, 10_000)]
    world.check(*WINDOWS)


@pytest.mark.slow
def test_figures_stay_when_old_plays_are_deleted(world: TimedWorld) -> None:
    kept = TODAY - 10
    retention.prune(world.store, 10, now=NOW, on_progress=lambda *_: None)
    assert world.store.read(lambda: Play.select().where(Play.slot < kept * SLOTS_PER_DAY).count()).result() == 0
    for subject, plays in world.subjects().items():
        world.check_window(subject, plays, WINDOWS[1])
        world.check_window(subject, plays, WINDOWS[3])
        found = world.store.read(partial(milestones.build, subject)).result()
        expected = oracle.milestones(plays)
        times = [each.at // HOUR * HOUR if each.at < kept * DAY else each.at for each in found.plays]
        assert [each.at for each in found.plays] == times
        assert [isoformat(each.at)[:13] for each in found.plays] == [each["at"][:13] for each in expected["plays"]]
        assert shapes.milestones(found)["best_day"] == expected["best_day"]


def packed_play(slot: int, duration: int | None, length: int) -> bytes:
    """Return a play as histograms have it: what follows the listener of a new play."""
    return counts.pack(slot, 0, duration, length)[-histograms.WIDTH :]


@pytest.mark.parametrize(("plays", "doubled"), [(1, 0), (2, 0), (160, 0), (161, 0), (300, 0), (70_000, 0), (3, 31)])
def test_histograms_of_any_size_can_be_added(plays: int, doubled: int) -> None:
    packed = packed_play(121, 10_000, 200_000)
    many = histograms.merge([packed] * plays)
    for _ in range(doubled):
        many = histograms.merge([many, many])
    plays <<= doubled
    found = histograms.unpack([many + packed_play(0, None, 1), packed_play(120, 5, 0)])
    assert (found.hours[73], found.skipped[5], found.hours[72]) == (plays + 1, plays, 1)
    assert (sum(found.hours), found.without_length) == (plays + 2, 1)
    assert sum(found.completions) == found.completions[5] == plays


@pytest.mark.parametrize("plays", [170, 191, 192, 255, 256, 600, 65_471, 65_472, 65_535, 65_536])
def test_a_merged_histogram_is_the_same_however_its_plays_came(plays: int) -> None:
    """Numbers of 255 and of 65,535 plays are the largest of one and of two bytes."""
    packed = packed_play(121, 10_000, 200_000)
    few, others = [packed] * 64, [packed_play(500, None, 1)] * 9
    appended = histograms.merge([b"".join([histograms.merge([packed] * plays), *few, *others])])
    assert appended == histograms.merge([*few, *others, packed * plays])
    assert histograms.unpack([appended]).hours[73] == plays + 64


@pytest.mark.parametrize(
    ("plays", "mean", "median"),
    [
        ([], None, None),
        ([0], 0.0, 0.0),
        ([3, 4], 3.5, 3.5),
        ([0, 0, 100], 33.3, 0.0),
        ([1, 2, 4, 100], 26.8, 3.0),
        ([50] * 9, 50.0, 50.0),
        ([2, 2, 2, 3], 2.3, 2.0),  # 2.25 on average
    ],
)
def test_completion_is_the_mean_and_the_median(plays: list[int], mean: float | None, median: float | None) -> None:
    assert listening.summarize([plays.count(percent) for percent in range(101)]) == (mean, median)


@pytest.mark.parametrize(
    ("duration", "length", "percent", "skipped"),
    [
        (9_999, 20_000, 49, True),
        (10_000, 20_000, 50, False),
        (29_999, 200_000, 14, True),
        (30_000, 200_000, 15, False),
        (199_999, 200_000, 99, False),
        (10**9, 200_000, 100, False),
        (0, 1, 0, True),
    ],
)
def test_a_skip_ends_before_half_a_minute_and_half_of_the_track(
    duration: int, length: int, percent: int, *, skipped: bool
) -> None:
    found = histograms.unpack([packed_play(0, duration, length)])
    assert [each for each, plays in enumerate(found.completions) if plays] == [percent]
    assert sum(found.skipped) == skipped
