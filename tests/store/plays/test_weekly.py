"""Figures are the same from daily, weekly and monthly rollups, late plays included."""

import random
from collections.abc import Callable
from functools import partial

import pytest

from musicsvc.clock import DAY
from musicsvc.store.engine.store import Store
from musicsvc.store.models import PlayStretch, Track
from musicsvc.store.plays import reattribution
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups import monthly, weekly
from musicsvc.store.plays.rollups.reader import PlayStats, Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.conftest import NOW
from tests.support import play_counts
from tests.support.listening_world import SLOT, Catalog, catalog
from tests.support.oracle import PlayOf

TODAY = NOW // DAY
LONG = 150  # days with plays


def plays(made: Catalog, chance: random.Random, count: int, days: range) -> list[tuple[int, int, str]]:
    """Return random plays on these days before today, most of them of tracks 0 and 1."""
    return [
        (
            made.tracks[chance.choice((0, 0, 0, 1, 1, 2, 3))],
            (TODAY - chance.choice(days)) * DAY + chance.randrange(DAY // SLOT) * SLOT,
            str(chance.randrange(200)),
        )
        for _ in range(count)
    ]


def roll_up(store: Store) -> None:
    while store.write(partial(monthly.roll_up, 100)).result():
        pass


@pytest.fixture
def made(store: Store) -> Catalog:
    """Days with many plays, all rolled up; then late plays."""
    chance = random.Random(3)
    made = store.write(partial(catalog, NOW)).result()
    for count in (9000, 1000):
        store.write(partial(made.add_plays, plays(made, chance, count, range(1, LONG)))).result()
        roll_up(store)
    store.write(partial(made.add_plays, plays(made, chance, 600, range(1, LONG)))).result()
    return made


def subjects(made: Catalog) -> list[tuple[str, Subject]]:
    return [
        *(("track", Subject(TRACK, track)) for track in made.tracks),
        *(("album", Subject(ALBUM, album)) for album in made.albums),
        *(("artist", Subject(ARTIST, artist)) for artist in made.artists),
    ]


def counts_of(played: list[PlayOf], first: int, end: int) -> tuple[int, int]:
    """Return the numbers of plays and distinct listeners of these days."""
    some = [play for play in played if first <= play.at // DAY < end]
    return len(some), len({play.listener for play in some})


def agrees(store: Store, made: Catalog, first: int, length: int) -> None:
    """Check that every way of reading returns the counts of the single plays in two windows and of all time."""
    later = Window("", first + length, first + 2 * length)
    names = subjects(made)
    past = {name: [play for play in made.past.plays if play.track in made.past.tracks(*name)] for name in _named(names)}
    for noun, subject in names:
        played = past[noun, subject.id]
        expected = [counts_of(played, each.first, each.end) for each in (later, later.before)]
        expected.append(counts_of(played, 0, TODAY + 2))
        found = store.read(partial(play_counts.in_windows, subject, later, later.before)).result()
        assert [(each.plays, len(each.listeners)) for each in found] == expected
        whole = store.read(partial(play_counts.over, *subject, later.first, later.end)).result()
        assert (whole.plays, len(whole.listeners)) == expected[0]
    for kind, noun, ids in (
        (TRACK, "track", made.tracks),
        (ALBUM, "album", made.albums),
        (ARTIST, "artist", made.artists),
    ):
        for read in (_read, _stream):
            many = store.read(partial(read, kind, ids, later)).result()
            alone = {
                each: store.read(partial(play_counts.in_windows, Subject(kind, each), later)).result() for each in ids
            }
            assert many == alone
        some = store.read(partial(_plays, kind, ids, later)).result()
        assert {each: some.get(each, 0) for each in ids} == {
            each: counts_of(past[noun, each], later.first, later.end)[0] for each in ids
        }


def _read(kind: int, ids: list[int], window: Window) -> dict[int, list[PlayStats]]:
    return Reader(window).read(kind, ids)


def _plays(kind: int, ids: list[int], window: Window) -> dict[int, int]:
    return Reader(window, all_time=False).plays(kind, ids)


def _stream(kind: int, ids: list[int], window: Window) -> dict[int, list[PlayStats]]:
    return Reader(window).stream(kind, ids)


def _named(names: list[tuple[str, Subject]]) -> list[tuple[str, int]]:
    return [(noun, subject.id) for noun, subject in names]


def weeks_of(store: Store, subject: Subject) -> list[int]:
    """Return the weeks of which a subject has rollups."""
    mine = (PlayStretch.kind == subject.kind) & (PlayStretch.subject == subject.id)
    query = PlayStretch.select(PlayStretch.stretch).where(mine).order_by(PlayStretch.stretch).tuples()
    return store.read(lambda: [number for (number,) in query.iterator()]).result()


def test_every_window_equals_the_count_of_single_plays(store: Store, made: Catalog) -> None:
    last = (TODAY - 1) // weekly.DAYS
    assert weeks_of(store, Subject(TRACK, made.tracks[0])) == [*range(last - 13, last)]
    assert weeks_of(store, Subject(TRACK, made.tracks[4])) == []
    chance = random.Random(5)

    for length in (1, 7, 8, 16, 30, 30, 30, 31, 64, 75):
        agrees(store, made, TODAY + 1 - 2 * length - chance.randrange(9), length)


def test_weeks_of_128_plays_on_days_with_at_least_16_are_counted(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    first = TODAY // weekly.DAYS * weekly.DAYS - 16
    often, rarely = made.tracks[4], made.tracks[2]
    by_day = {often: [16] * 8, rarely: [17] * 7 + [15]}
    heard = [
        (track, (first + day) * DAY + n * SLOT, f"l{n}")
        for track, counts in by_day.items()
        for day, count in enumerate(counts)
        for n in range(count)
    ]
    store.write(partial(made.add_plays, [*heard, (made.tracks[0], NOW, "today")])).result()
    roll_up(store)
    assert weeks_of(store, Subject(TRACK, often)) == [first // weekly.DAYS]
    assert weeks_of(store, Subject(TRACK, rarely)) == []


def test_late_plays_are_added_to_weekly_rollups(store: Store, made: Catalog) -> None:
    subject = Subject(ARTIST, made.artists[0])
    before = store.read(lambda: plays_by_week(subject)).result()

    at = (TODAY - 20) * DAY
    store.write(partial(made.add_plays, [(made.tracks[0], at, f"late {number}") for number in range(50)])).result()

    after = store.read(lambda: plays_by_week(subject)).result()
    assert {number: after[number] - before[number] for number in after if after[number] != before[number]} == {
        (TODAY - 20) // weekly.DAYS: 50
    }
    agrees(store, made, TODAY + 1 - 60, 30)


def plays_by_week(subject: Subject) -> dict[int, int]:
    mine = (PlayStretch.kind == subject.kind) & (PlayStretch.subject == subject.id)
    return dict(PlayStretch.select(PlayStretch.stretch, PlayStretch.plays).where(mine).tuples().iterator())


def test_a_track_that_moves_takes_its_plays_out_of_weekly_rollups(store: Store, made: Catalog) -> None:
    track, old, new = made.tracks[0], made.albums[0], made.albums[1]

    def move() -> None:
        with reattribution.rebuilding([track]):
            Track.update(album=new).where(Track.id == track).execute()

    store.write(move).result()
    made.past.on_album[old].remove(track)
    made.past.on_album[new].append(track)

    agrees(store, made, TODAY + 1 - 60, 30)


def test_old_weekly_rollups_are_deleted(store: Store, made: Catalog) -> None:
    chance = random.Random(9)
    store.write(partial(made.add_plays, plays(made, chance, 2500, range(-40, 1)))).result()
    roll_up(store)

    last = (TODAY + 40) // weekly.DAYS
    kept = weeks_of(store, Subject(TRACK, made.tracks[0]))

    assert kept
    assert min(kept) == last - 13


@pytest.mark.parametrize(
    ("days", "whole"),
    [(set(), []), ({*range(8)}, [0]), ({*range(1, 16)}, [1]), ({*range(24)} - {9}, [0, 2]), ({*range(7)}, [])],
)
def test_weeks_are_found_whose_days_are_all_given(days: set[int], whole: list[int]) -> None:
    assert weekly.within(days, watermark=9) == whole


def test_weeks_that_have_no_counts_any_more_or_not_yet_are_not_found() -> None:
    days = {*range(40 * weekly.DAYS)}
    assert weekly.within(days, watermark=30) == [*range(30 - 13, 30)]


def test_nothing_is_rolled_up_without_plays(store: Store) -> None:
    make: Callable[[], bool] = weekly.roll_up
    assert store.write(make).result() is False
