"""Hours of the week in a time zone equal a count of single plays by their local time."""

import random
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from musicsvc.clock import DAY, HOUR
from musicsvc.store.engine.store import Store
from musicsvc.store.insights.listening import local_hours
from musicsvc.store.plays.periods import SLOT, Window
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import ARTIST, Subject
from tests.conftest import NOW
from tests.support.listening_world import Catalog, catalog

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
