"""Listening, hours and milestones equal a count of single plays, whatever happens to plays and tracks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY
from musicsvc.store.plays import verify
from musicsvc.store.plays.periods import Window
from tests.conftest import NOW
from tests.support.listening_oracle import TimedPlay
from tests.support.listening_world import TRACKS
from tests.support.timed_world import TimedWorld

if TYPE_CHECKING:
    from musicsvc.store.engine.store import Store

TODAY = NOW // DAY
WINDOWS = [Window("", TODAY - first, TODAY + 1 - last) for first, last in ((0, 0), (29, 0), (6, 1), (89, 31), (800, 0))]
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
    some.just("roll up"),
    some.tuples(some.just("move"), some.integers(0, 3), some.sampled_from([None, 0, 1])),
    some.tuples(some.just("measure"), some.integers(0, 3), some.sampled_from([0, 15_000, 60_000, 400_001])),
)
window = some.tuples(back, back).map(lambda ends: Window("", TODAY - max(ends), TODAY - min(ends) + 1))
LIGHT = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def parties(world: TimedWorld, drawn: list[Any]) -> list[TimedPlay]:
    return [
        TimedPlay(world.made.tracks[track], min((TODAY - back) * DAY + at + n * 61 * 10**6, NOW), f"l{n}", duration)
        for track, back, at, count, duration in drawn
        for n in range(count)
    ]


@LIGHT
@given(drawn=some.lists(steps, min_size=1, max_size=8), windows=some.lists(window, max_size=2))
def test_every_figure_equals_a_count_of_single_plays(store: Store, drawn: list[Any], windows: list[Window]) -> None:
    world = TimedWorld.create(store, NOW)
    for step in drawn:
        if step == "roll up":
            world.roll_up()
        elif isinstance(step, list):
            world.play(parties(world, step))
        elif step[0] == "move":
            world.move(world.made.tracks[step[1]], None if step[2] is None else world.made.albums[step[2]])
        else:
            world.measure({world.made.tracks[step[1]]: step[2]})
    world.check(*windows, WINDOWS[1])
    assert verify.run(store, check=True, on_progress=lambda *_: None).differing == 0
