"""The plays of a part of a day are read from an index of the plays of each track on each day."""

from functools import partial

import pytest

from musicsvc.clock import DAY, SECOND
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.plays.periods import SLOT, Window
from musicsvc.store.plays.rollups import parts
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from tests.conftest import NOW
from tests.support.listening_world import Catalog, catalog

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
        found = store.read(partial(parts.of_day, kind, [number], part)).result()
        assert sum(some for some, _ in found.get(number, [])) == plays


def test_a_part_of_a_day_is_empty_before_its_first_second(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    add(store, made, [(0, 0, "a")])
    for days in (Window("", TODAY - 1, TODAY - 1), Window("", TODAY - 2, TODAY)):
        assert store.read(partial(parts.of_day, TRACK, made.tracks, days)).result() == {}


def plan_of(kind: int, time: str, values: tuple[int, ...]) -> list[str]:
    """Return the steps in which SQLite reads the plays of a subject."""
    return [str(row[-1]) for row in fetch(f"EXPLAIN QUERY PLAN {parts.query(kind, '= ?', time)}", 1, *values)]


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("kind", [TRACK, ALBUM, ARTIST])
def test_only_the_plays_of_the_subject_on_that_day_are_read(store: Store, kind: int) -> None:
    for time, values, index in (
        (
            parts.WHOLE_SLOTS,
            (9, 9, 9),
            "USING COVERING INDEX play_of_day (<expr>=? AND track_id=? AND slot>? AND slot<?)",
        ),
        (parts.PART_OF_SLOT, (9, 9), "USING PRIMARY KEY (slot=? AND track_id=?)"),
    ):
        plan = store.read(partial(plan_of, kind, time, values)).result()
        assert plan[-1] == f"SEARCH p {index}"
        assert not [step for step in plan if step.startswith("SCAN")]
