"""Trends are those of a full count, although most rows are only looked at."""

import random
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts import users
from musicsvc.store.dashboards import tables, trends
from musicsvc.store.dashboards.tables import Selection
from musicsvc.store.dashboards.trends import Change, Trends
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import tops
from musicsvc.store.models import Artist, Track, TrackArtist
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT, Window, between, day_of, to_date, window
from musicsvc.store.plays.rollups import blocks, listeners
from musicsvc.store.plays.subjects import ARTIST, TRACK
from tests.conftest import NOW
from tests.support.bounds import Bounds

ARTISTS, TRACKS, OF_OTHERS, DAYS, MOST = 20, 60, 3, 50, 4
Plays = Mapping[int, list[int]]  # instants, by track


def fill(plays: Plays) -> int:
    """Create the tracks of an account, every third of them by an artist of another, with plays. Return the account."""
    own, other = (users.create(f"{name}@label.test", now=NOW).id for name in ("own", "other"))
    for number in range(ARTISTS):
        Artist.create(name=f"Artist {number}", manager=own if number % OF_OTHERS else other, created_at=NOW)
    for number in range(TRACKS):
        Track.create(name=f"Track {number}", duration=1, created_at=NOW)
        TrackArtist.create(track=number + 1, artist=1 + number % ARTISTS, position=0)
    person = listeners.ensure(["opaque:x"])["opaque:x"]
    rows = ((at // SLOT, track, person, WITHOUT_ID, at, None, 0) for track, some in plays.items() for at in some)
    ingest.record([PlayRow(*row) for row in sorted(rows)])
    while blocks.roll_up(1000):
        pass
    return int(own)


def draw(seed: int) -> Plays:
    """Return plays of tracks, few of which are popular, on days with different numbers of plays, in different slots."""
    chance = random.Random(seed)
    flat = seed % 2
    found = {}
    for track in range(1, TRACKS + 1):
        count = int(chance.choice((9, 14)) if flat else 700 / chance.randint(1, TRACKS) ** 1.1)
        found[track] = [
            slot * SLOT + SLOT // 2 for slot in chance.sample(range((NOW - DAYS * DAY) // SLOT, NOW // SLOT), count)
        ]
    return found


def owned(track: int) -> bool:
    return bool((track - 1) % ARTISTS % OF_OTHERS)


def counted(plays: Plays, begin: int, end: int) -> Counter[int]:
    return Counter({track: sum(begin <= at < end for at in some) for track, some in plays.items() if owned(track)})


def expected(plays: Plays, days: Window) -> Trends:
    now, before = (counted(plays, each.starts, each.ends) for each in (days, days.before))
    total = counted(plays, 0, days.ends)
    changes = [Change(track, now[track], before[track]) for track in total]
    changes.sort(key=lambda each: (-abs(each.plays - each.before), each.id))
    passed = [each for each in total if now[each] and len(str(total[each])) > max(2, len(str(total[each] - now[each])))]
    passed.sort(key=lambda each: (-len(str(total[each])), -now[each], -each))
    up, down = ([each for each in changes if sign * (each.plays - each.before) > 0][:MOST] for sign in (1, -1))
    return Trends(*((up, down) if days.compared_with else ([], [])), passed[:MOST])


def windows() -> list[Window]:
    today = day_of(NOW)
    some = [(today - 20, today - 11), (today - 45, today - 1), (today - 30, today)]
    return [
        *(window(each, NOW) for each in ("7-days", "today", "yesterday", "30-days", "all")),
        *(between(to_date(first), to_date(last), NOW) for first, last in some),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("dense", [2, 0])
@pytest.mark.parametrize("seed", range(4))
def test_movers_and_milestones_are_those_of_a_full_count(
    store: Store, monkeypatch: pytest.MonkeyPatch, bounds: Bounds, seed: int, dense: int
) -> None:
    bounds(dense=dense, popular_track=2, read_one_by_one=3, first_of_top=2)
    ways, best = set(), tops.best

    def noting(more: tops.Bounds, *others: Any, **order: Any) -> list[int] | None:
        found = best(more, *others, **order)
        ways.add((more.rest > 0, found is not None))
        return found

    monkeypatch.setattr(tops, "best", noting)
    plays = draw(seed)
    own = store.write(partial(fill, plays)).result()
    for days in windows():
        found = store.read(partial(trends.read, own, days, NOW, MOST, MOST)).result()
        assert found == expected(plays, days), days.name
    expected_ways = {(True, True), (True, False), (False, True)} if seed % 2 == 0 else {(True, False), (False, True)}
    assert ways >= (expected_ways if store.url.startswith("sqlite") else {(False, True)})  # PostgreSQL reads all rows


@pytest.mark.parametrize("kind", [ARTIST, TRACK])
@pytest.mark.parametrize("seed", range(2))
def test_the_first_page_of_a_table_has_the_most_played_rows(store: Store, bounds: Bounds, seed: int, kind: int) -> None:
    bounds(many_in_table=0, first_of_top=2, table_rows=3)
    plays = draw(seed)
    own = store.write(partial(fill, plays)).result()
    for days in windows():
        counts = counted(plays, days.starts, days.ends)
        if kind == ARTIST:
            counts = Counter()
            for track, count in counted(plays, days.starts, days.ends).items():
                counts[1 + (track - 1) % ARTISTS] += count
        order = sorted(counts, key=lambda each: (-counts[each], -each))
        page = store.read(partial(tables.page, own, Selection(kind), days, 1)).result()
        assert ([row.id for row in page.rows], page.total) == (order[:3], len(order))
