"""The counts of the days of a month, which often played tracks, albums and artists have, equal single plays."""

import random
from collections import Counter
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, HOUR
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.insights.listening import milestones
from musicsvc.store.models import Track
from musicsvc.store.plays import reattribution, verify
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import monthly, reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from tests.conftest import NOW
from tests.support.heard_plays import Heard, draw, ignore, import_plays, withdraw
from tests.support.listening_world import Catalog, catalog

MONTH = NOW // DAY // monthly.DAYS - 2
FIRST = MONTH * monthly.DAYS
LIGHT = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


def heard(made: Catalog, seed: int, count: int) -> Heard:
    """Return random plays of the month."""

    def time(chance: random.Random) -> int:
        return (FIRST + int(chance.triangular(0, monthly.DAYS, 9))) * DAY + chance.randrange(DAY)

    return draw(made, seed, count, time)


def finish(store: Store, made: Catalog) -> None:
    """Record plays of today, and create all counts that are due."""
    store.write(partial(made.add_plays, [(made.tracks[2], NOW, "today")])).result()
    while store.write(partial(monthly.roll_up, 100)).result():
        pass


def counted(store: Store, made: Catalog) -> set[tuple[int, int]]:
    """Return (kind, id) of all whose days of the month are counted."""
    return {
        (kind, subject)
        for kind, ids in ((TRACK, made.tracks), (ALBUM, made.albums), (ARTIST, made.artists))
        for (subject, month), days in store.read(partial(monthly.stored_days, kind, ids, range(MONTH + 3)))
        .result()
        .items()
        if days and month == MONTH
    }


def agrees(store: Store, made: Catalog) -> None:
    """Check the plays and listeners by day, and the milestones, against single plays."""
    for noun, kind, ids in (
        ("track", TRACK, made.tracks),
        ("album", ALBUM, made.albums),
        ("artist", ARTIST, made.artists),
    ):
        found = store.read(partial(milestones.build_each, kind, ids)).result()
        for subject in ids:
            tracks = made.past.tracks(noun, subject)
            plays = sorted(each.at for each in made.past.plays if each.track in tracks)
            days = Counter(at // DAY for at in plays)
            for span in (range(FIRST - 5, FIRST + 80), range(FIRST + 3, FIRST + 20)):
                people = {
                    day: {each.listener for each in made.past.plays if each.track in tracks and each.at // DAY == day}
                    for day in span
                }
                expected = {day: (days[day], len(people[day])) for day in span if days[day]}
                assert store.read(partial(reader.counts_by_day, kind, subject, span)).result() == expected
            best = max(sorted(days), key=days.__getitem__, default=None)
            assert found[subject].best_day == (None if best is None else (best, days[best]))
            assert [each.at for each in found[subject].plays] == [
                plays[number - 1] for number in (100, 1000) if number <= len(plays)
            ]


@LIGHT
@given(
    batches=some.lists(some.sampled_from([1, 30, 400, 700]), min_size=1, max_size=3),
    undone=some.sampled_from([0, 1, 300]),
    seed=some.integers(0, 9),
)
def test_days_of_months_equal_single_plays(store: Store, batches: list[int], undone: int, seed: int) -> None:
    made = store.write(partial(catalog, NOW)).result()
    finish(store, made)
    drawn = heard(made, seed, sum(batches))
    kept = {(track, at // SLOT, name) for track, at, name in drawn}
    fresh = [each for each in heard(made, seed + 10, undone) if (each[0], each[1] // SLOT, each[2]) not in kept]
    store.write(partial(import_plays, fresh)).result()
    for count in batches:
        store.write(partial(made.add_plays, drawn[:count])).result()
        drawn = drawn[count:]
        store.write(partial(monthly.roll_up, 1000)).result()
    withdraw(store)
    agrees(store, made)
    finish(store, made)
    agrees(store, made)
    assert verify.run(store, check=True, on_progress=ignore).differences == []


@pytest.fixture
def made(store: Store) -> Catalog:
    """Return a catalog with counted days of its first track, its album and its artists, also in the next month."""
    made = store.write(partial(catalog, NOW)).result()
    store.write(partial(made.add_plays, heard(made, 1, 500))).result()
    later = [(track, at + monthly.DAYS * DAY, name) for track, at, name in heard(made, 2, 450)]
    store.write(partial(made.add_plays, later)).result()
    assert counted(store, made) == set()
    finish(store, made)
    assert (TRACK, made.tracks[0]) in counted(store, made)
    assert (TRACK, made.tracks[1]) not in counted(store, made)
    return made


def test_a_late_play_is_counted_at_once_and_with_its_month_later(store: Store, made: Catalog) -> None:
    before = counted(store, made)
    agrees(store, made)
    late = [(made.tracks[0], FIRST * DAY, "late"), (made.tracks[0], (FIRST + 20) * DAY, "late too")]
    store.write(partial(made.add_plays, late)).result()
    assert counted(store, made) == {(ALBUM, made.albums[1]), (ARTIST, made.artists[2])} & before
    agrees(store, made)
    finish(store, made)
    assert counted(store, made) == before
    agrees(store, made)


def test_the_days_of_months_with_256_plays_are_counted(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    often, rarely = made.tracks[4], made.tracks[2]
    heard = [
        (track, FIRST * DAY + n * HOUR, f"l{n}") for track, count in ((often, 256), (rarely, 255)) for n in range(count)
    ]
    store.write(partial(made.add_plays, heard)).result()
    finish(store, made)
    assert {subject for kind, subject in counted(store, made) if kind == TRACK} == {often}
    stored = store.read(partial(monthly.stored_days, TRACK, [often], range(MONTH, MONTH + 1))).result()
    assert stored == {(often, MONTH): [*[(24, 24)] * 10, (16, 16), *[(0, 0)] * (monthly.DAYS - 11)]}


def test_days_follow_a_track_to_another_album(store: Store, made: Catalog) -> None:
    first, second, *_ = made.albums

    def move() -> None:
        with reattribution.rebuilding(made.tracks[:1]):
            Track.update(album=second).where(Track.id == made.tracks[0]).execute()

    assert (ALBUM, first) in counted(store, made)
    store.write(move).result()
    made.past.on_album[first].remove(made.tracks[0])
    made.past.on_album[second].append(made.tracks[0])
    agrees(store, made)
    finish(store, made)
    assert (ALBUM, second) in counted(store, made)
    assert (ALBUM, first) not in counted(store, made)
    agrees(store, made)


def test_wrong_days_of_a_month_are_named_and_repaired(store: Store, made: Catalog) -> None:
    zeros = "UPDATE play_block SET days = ? WHERE kind = 1 AND block = ? AND days IS NOT NULL"
    store.write(partial(sql.run, zeros, bytes(monthly.PACKED_DAY.size * monthly.DAYS), MONTH)).result()
    wrong = verify.run(store, check=True, on_progress=ignore)
    assert wrong.differing == len(wrong.differences) == 1
    assert wrong.differences[0].row.startswith(f"track {made.tracks[0]}, the 32 days from ")
    assert wrong.differences[0].row.endswith(": the counts of its days")
    assert verify.run(store, check=False, on_progress=ignore).differing == 1
    assert verify.run(store, check=True, on_progress=ignore).differing == 0
    agrees(store, made)
