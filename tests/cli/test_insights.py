"""`musicsvc insights`: the figures of the API in the terminal, and how they came about."""

from functools import partial

import pytest
from peewee import SQL

from musicsvc.cli import listening
from musicsvc.clock import DAY, MINUTE, Clock
from musicsvc.store.engine.store import Store
from musicsvc.store.models import PlayCount
from musicsvc.store.plays.rollups import counts
from tests.cli.conftest import Json, Run
from tests.support.listening_world import Catalog, catalog

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database


@pytest.fixture
def now() -> int:
    return Clock().now()


@pytest.fixture
def made(store: Store, now: int) -> Catalog:
    """Track 0 by five listeners on each of the last 40 days, two of them the same; it is not midnight."""
    heard = [
        (0, day, name) for day in range(40) for name in (f"a{day % 10}", f"b{day % 3}", "daily", "always", f"c{day}")
    ]

    def fill() -> Catalog:
        made = catalog(now)
        made.add_plays([(made.tracks[track], now - day * DAY - MINUTE, name) for track, day, name in heard])
        made.give([(made.tracks[0], now - DAY), (made.tracks[1], now)], [(made.tracks[0], now - 39 * DAY)])
        return made

    return store.write(fill).result()


def test_explain_finds_a_figure_that_does_not_equal_the_plays(
    run: Run, ask: Json, store: Store, made: Catalog, now: int
) -> None:
    wrong = PlayCount.update(plays=PlayCount.plays + 1).where(SQL(counts.OF_DAY) == now // DAY)
    store.write(partial(wrong.execute)).result()
    line = ("insights", "explain", "track", str(made.tracks[0]), "--period", "7-days")

    page = run(*line).stdout

    assert "plays in the window: served 36, counted 35" in page
    assert "growth of plays: served 2.9, counted 0.0" in page
    assert "plays of all time: served 201, counted 200" in page
    assert "musicsvc plays recount" in page
    found = ask(*line)
    assert found["equal"] is False
    assert {"figure": "plays in the window", "served": 36, "counted": 35} in found["differences"]


@pytest.mark.parametrize(
    ("numbers", "width", "line"),
    [
        ([], 10, ""),
        ([0, 0, 0], 10, "▁▁▁"),
        ([5], 10, "█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], 10, "▁▃▄▅▆▇██"),
        ([1, 1000], 10, "▂█"),
        ([0, 0, 8, 8], 2, "▁█"),
        ([1, 1, 1, 1, 1], 3, "███"),
    ],
)
def test_a_sparkline_tells_little_from_nothing_and_fits(numbers: list[int], width: int, line: str) -> None:
    assert listening.draw(numbers, width) == line


def test_a_sparkline_is_plain_where_there_are_no_bars() -> None:
    assert listening.draw([0, 1, 8], 10, "ascii") == "_.#"
