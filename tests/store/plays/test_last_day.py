"""The plays of a part of a day are read from an index of the plays of each track on each day."""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, SECOND
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOT, Window
from musicsvc.store.plays.rollups import listeners, reader
from musicsvc.store.plays.subjects import ACCOUNT, ALBUM, ARTIST, TRACK
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.listening_world import Catalog, catalog, record, withdraw

TODAY = NOW // DAY
NOON = 43_200  # seconds


def add(store: Store, made: Catalog, heard: list[tuple[int, int, str]]) -> None:
    """Record plays of yesterday as (track's number, microseconds of the day, listener's name)."""
    plays = [(made.tracks[track], (TODAY - 1) * DAY + at, name) for track, at, name in heard]
    store.write(partial(made.add_plays, plays)).result()


@pytest.mark.parametrize("seconds", [NOON, NOON + 1, NOON + 29, NOON + 30, NOON + 31])
def test_a_part_of_a_day_ends_with_its_last_microsecond(store: Store, seconds: int) -> None:
    made = store.write(partial(catalog, NOW)).result()
    end = seconds * SECOND
    add(store, made, [(0, 0, "first"), (1, end - SLOT, "a"), (3, end - 1, "b"), (0, end, "c"), (0, end + SLOT, "d")])
    part = Window("", TODAY - 1, TODAY - 1, seconds=seconds)

    for kind, number, plays in (
        (TRACK, made.tracks[0], 1),
        (TRACK, made.tracks[2], 0),
        (ALBUM, made.albums[0], 2),
        (ARTIST, made.artists[0], 3),
    ):
        found = store.read(partial(reader.of_last_day, kind, [number], part)).result()
        assert sum(count for count, _ in found.get(number, [])) == plays


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cuts=some.lists(some.integers(1, DAY // SECOND - 1), min_size=3, max_size=5),
    seed=some.integers(0, 9),
    many=some.sampled_from((0, subjects.MANY)),
)
def test_a_part_of_a_day_has_its_single_plays_at_any_second(
    store: Store, bounds: Bounds, cuts: list[int], seed: int, many: int
) -> None:
    bounds(many_tracks=many)  # tracks of an account that is read in the other way
    made = store.write(partial(catalog, NOW)).result()
    first = (TODAY - 1) * DAY
    drawn = made.draw(seed, 400, lambda chance: first + chance.randrange(DAY))
    store.write(partial(made.add_plays, drawn[:300])).result()
    kept = {(play.track, play.at // SLOT, play.listener) for play in drawn[:300]}
    others = [each for each in drawn[300:] if (each.track, each.at // SLOT, each.listener) not in kept]
    store.write(partial(record, others, 7)).result()
    withdraw(store, 7)
    for seconds in cuts:
        part = Window("", TODAY - 1, TODAY - 1, seconds=seconds)
        for noun, kind, ids in (
            ("track", TRACK, made.tracks),
            ("album", ALBUM, made.albums),
            ("artist", ARTIST, made.artists),
            ("artist", ACCOUNT, [made.manager.user_id]),
        ):
            found = store.read(partial(reader.of_last_day, kind, ids, part)).result()
            for subject in ids:
                tracks = made.tracks if kind == ACCOUNT else made.past.tracks(noun, subject)
                plays = [p for p in made.past.plays if p.track in tracks and 0 <= p.at - first < seconds * SECOND]
                heard = found.get(subject, [])
                assert sum(count for count, _ in heard) == len(plays)
                assert len(listeners.union(packed for _, packed in heard)) == len({play.listener for play in plays})


def test_a_part_of_a_day_is_empty_before_its_first_second(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    add(store, made, [(0, 0, "a")])
    for days in (Window("", TODAY - 1, TODAY - 1), Window("", TODAY - 2, TODAY)):
        assert store.read(partial(reader.of_last_day, TRACK, made.tracks, days)).result() == {}


def plan_of(kind: int, time: str, values: tuple[int, ...]) -> list[str]:
    """Return the steps in which SQLite reads the plays of a subject."""
    statement = reader.query(subjects.PLAYS[kind], "= ?", time)
    return [str(row[-1]) for row in fetch(f"EXPLAIN QUERY PLAN {statement}", 1, *values)]


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("kind", [TRACK, ALBUM, ARTIST, ACCOUNT])
def test_only_the_plays_of_the_subject_on_that_day_are_read(store: Store, kind: int) -> None:
    for time, values, index in (
        (
            reader.WHOLE_SLOTS,
            (9, 9, 9),
            "USING COVERING INDEX play_of_day (<expr>=? AND track_id=? AND slot>? AND slot<?)",
        ),
        (reader.PART_OF_SLOT, (9, 9), "USING PRIMARY KEY (slot=? AND track_id=?)"),
    ):
        plan = store.read(partial(plan_of, kind, time, values)).result()
        assert plan[-1] == f"SEARCH p {index}"
        # `members` are the tracks, which the steps before have found.
        assert not [step for step in plan if step.startswith("SCAN") and step != "SCAN members"]
