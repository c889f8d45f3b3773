"""The times of plays by their place in an hour, with evenly and unevenly spread plays."""

from functools import partial

import pytest

from musicsvc.clock import DAY, HOUR, SECOND
from musicsvc.store.engine.store import Store
from musicsvc.store.insights.listening import milestones
from musicsvc.store.insights.listening.milestones import Position, Slots
from musicsvc.store.plays.rollups.histograms import SLOTS_PER_HOUR
from musicsvc.store.plays.subjects import ARTIST, Subject
from tests.conftest import NOW
from tests.support.listening_world import TimedWorld
from tests.support.oracle import PlayOf
from tests.support.query_count import count_reads, queries

AT = NOW // DAY * DAY - 5 * HOUR  # the beginning of an hour
SLOT = AT // HOUR * SLOTS_PER_HOUR
# Seconds after the beginning of the hour: a play every 41 seconds; most in one slot, three times two of them together.
EVEN = [7 + 41 * n for n in range(87)]
UNEVEN = [900, 1800, *(1801 + n % 27 for n in range(30)), 1830, 3599]


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "statements"), [(EVEN, 2), (UNEVEN, 3)])
def test_each_play_of_an_hour_has_its_time(store: Store, seconds: list[int], statements: int) -> None:
    world = TimedWorld.create(store, NOW)
    of_artist = sorted(world.made.past.by_artist[world.made.artists[0]])
    other = next(each for each in world.made.tracks if each not in of_artist)
    times = [AT + second * SECOND for second in seconds]
    around = [AT - 1, AT + HOUR]
    world.play(PlayOf(of_artist[n % 2], at, f"l{n}", None) for n, at in enumerate(times + around))
    world.play(PlayOf(other, at, "other", None) for at in times)
    for subject, plays in world.subjects().items():
        mine = sorted(play.at for play in plays if AT <= play.at < AT + HOUR)
        asked = {n: Position(subject.id, AT // HOUR, n, len(mine)) for n in range(len(mine))}
        with queries(store) as asked_for:
            found = store.read(partial(milestones.times_of, subject.kind, asked)).result()
        assert found == dict(enumerate(mine))
        if subject == Subject(ARTIST, world.made.artists[0]):
            assert count_reads(asked_for) == statements  # the third reads the whole hour


def test_plays_that_were_deleted_have_no_time(store: Store) -> None:
    world = TimedWorld.create(store, NOW)
    track = world.made.tracks[0]
    world.play([PlayOf(track, AT, "one", None)])
    asked = {5: Position(track, AT // HOUR, 0, 3), 6: Position(track, AT // HOUR, 1, 3)}
    assert store.read(partial(milestones.times_of, 1, asked)).result() == {5: AT}


@pytest.mark.parametrize(
    ("place", "plays", "first", "end", "found"),
    [
        (0, 1, 0, 120, 0),
        (0, 6, 0, 120, 0),
        (0, 7, 0, 102, 0),
        (99, 400, 0, 36, 99),
        (199, 400, 0, 69, 199),
        (200, 401, 51, 120, -201),
        (201, 400, 51, 120, -199),
        (399, 400, 119, 120, -1),
    ],
)
def test_few_slots_of_the_nearer_end_of_the_hour_are_read(
    place: int, plays: int, first: int, end: int, found: int
) -> None:
    slots = milestones.likely_slots(Position(8, AT // HOUR, place, plays))
    assert slots == Slots(8, SLOT + first, SLOT + end, found)
