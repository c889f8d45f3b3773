"""Counts of parts of days, which often played tracks, albums and artists have, equal those of single plays."""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, HOUR, SECOND
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.models import PlayPart, Track
from musicsvc.store.plays import reattribution, retention, verify
from musicsvc.store.plays.periods import SLOT, Window
from musicsvc.store.plays.rollups import day_parts, listeners, parts
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.conftest import NOW
from tests.support.heard_plays import Heard, draw, ignore, import_plays, withdraw
from tests.support.listening_world import Catalog, catalog

YESTERDAY = NOW // DAY - 1
MIDNIGHT = YESTERDAY * DAY
LIGHT = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


def heard(made: Catalog, seed: int, count: int) -> Heard:
    """Return random plays of yesterday."""
    return draw(made, seed, count, lambda chance: MIDNIGHT + chance.randrange(DAY))


def subjects(made: Catalog) -> list[tuple[str, Subject]]:
    return [
        *(("track", Subject(TRACK, track)) for track in made.tracks),
        *(("album", Subject(ALBUM, album)) for album in made.albums),
        *(("artist", Subject(ARTIST, artist)) for artist in made.artists),
    ]


def agrees(store: Store, made: Catalog, seconds: int) -> None:
    """Check the plays and listeners of all in the first seconds of yesterday against single plays."""
    part = Window("", YESTERDAY, YESTERDAY, seconds=seconds)
    for noun, (kind, subject) in subjects(made):
        tracks = made.past.tracks(noun, subject)
        plays = [
            each for each in made.past.plays if each.track in tracks and 0 <= each.at - MIDNIGHT < seconds * SECOND
        ]
        found = store.read(partial(parts.of_day, kind, [subject], part)).result().get(subject, [])
        assert sum(count for count, _ in found) == len(plays)
        assert len(listeners.union(packed for _, packed in found)) == len({each.listener for each in plays})


def counted(store: Store) -> set[tuple[int, int]]:
    """Return (kind, id) of all that have parts, and check that they have all of a day."""
    rows = store.read(lambda: [(each.kind, each.subject) for each in PlayPart.select()]).result()
    assert len(rows) == day_parts.PER_DAY * len(set(rows))
    return set(rows)


@LIGHT
@given(
    batches=some.lists(some.sampled_from([1, 90, 127, 128, 129, 300]), min_size=1, max_size=3),
    undone=some.sampled_from([0, 1, 40, 200]),
    cuts=some.lists(
        some.one_of(
            some.builds(lambda hour, offset: hour * 3600 + offset, some.integers(1, 23), some.integers(-31, 31)),
            some.integers(1, DAY // SECOND - 1),
        ),
        min_size=3,
        max_size=5,
    ),
    seed=some.integers(0, 9),
)
def test_parts_equal_single_plays_at_any_second(
    store: Store, batches: list[int], undone: int, cuts: list[int], seed: int
) -> None:
    made = store.write(partial(catalog, NOW)).result()
    drawn = heard(made, seed, sum(batches))
    later = heard(made, seed + 10, undone)
    kept = {(track, at // SLOT, name) for track, at, name in drawn}
    for number, count in enumerate(batches):
        store.write(partial(made.add_plays, drawn[:count])).result()
        drawn = drawn[count:]
        if number == 0:
            fresh = [each for each in later if (each[0], each[1] // SLOT, each[2]) not in kept]
            store.write(partial(import_plays, fresh)).result()
    withdraw(store)
    for seconds in cuts:
        agrees(store, made, seconds)
    assert verify.run(store, check=True, on_progress=ignore).differences == []


@pytest.fixture
def made(store: Store) -> Catalog:
    """Return a catalog whose first track, its album and its artists have parts of yesterday."""
    made = store.write(partial(catalog, NOW)).result()
    for batch in (heard(made, 1, 300), heard(made, 2, 100)):
        store.write(partial(made.add_plays, batch)).result()
    assert (TRACK, made.tracks[0]) in counted(store)
    assert (TRACK, made.tracks[1]) not in counted(store)
    return made


def test_a_day_has_parts_from_its_128th_play_on(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    plays = [(made.tracks[1], MIDNIGHT + 4 * HOUR + n * 10 * SECOND, str(n)) for n in range(512)]
    track = TRACK, made.tracks[1]
    for first, end in ((0, 127), (127, 128), (128, 512)):
        store.write(partial(made.add_plays, plays[first:end])).result()
        assert (track in counted(store)) == (end >= 128)
        agrees(store, made, 10 * 3600)
    rows = store.read(lambda: [(each.plays, each.listeners) for each in PlayPart.select()]).result()
    assert {count for count, _ in rows} == {0, 512}
    assert all(packed == listeners.merge([packed]) for _, packed in rows)  # compact


def test_single_plays_are_read_only_of_the_last_two_hours(store: Store, made: Catalog) -> None:
    read = store.read(lambda: parts.of_day(TRACK, made.tracks[:1], Window("", YESTERDAY, YESTERDAY, seconds=80_000)))
    whole, (last, _) = read.result()[made.tracks[0]][:11], read.result()[made.tracks[0]][11]
    plays = [each.at - MIDNIGHT for each in made.past.plays if each.track == made.tracks[0]]
    assert [count for count, _ in whole] == [
        sum(7200 * part <= at // SECOND < 7200 * (part + 1) for at in plays) for part in range(11)
    ]
    assert last == sum(79_200 <= at // SECOND < 79_980 for at in plays)  # whole half minutes


def test_parts_follow_a_track_to_another_artist(store: Store, made: Catalog) -> None:
    first, second, *_ = made.albums

    def move() -> None:
        with reattribution.rebuilding(made.tracks[:1]):
            Track.update(album=second).where(Track.id == made.tracks[0]).execute()

    assert (ALBUM, first) in counted(store)
    store.write(move).result()
    assert (ALBUM, second) in counted(store)
    assert (ALBUM, first) not in counted(store)
    assert verify.run(store, check=True, on_progress=ignore).differences == []


def test_parts_end_with_the_single_plays_of_their_day(store: Store, made: Catalog) -> None:
    retention.prune(store, 1, now=NOW, on_progress=ignore)
    assert counted(store)
    retention.prune(store, 0, now=NOW, on_progress=ignore)
    assert counted(store) == set()
    store.write(partial(day_parts.rebuild, {TRACK: {made.tracks[0]: [YESTERDAY]}})).result()
    assert counted(store) == set()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE play_part SET plays = plays + 1 WHERE part - part / 12 * 12 = 3",
        "UPDATE play_part SET listeners = (SELECT listeners FROM play_part ORDER BY plays DESC LIMIT 1)",
        "DELETE FROM play_part WHERE kind = 2",
        "DELETE FROM play_part WHERE part - part / 12 * 12 = 5",
        "INSERT INTO play_part SELECT kind, 99, part, plays, listeners FROM play_part WHERE kind = 1",
        "INSERT INTO play_part SELECT kind, subject, part - 1200, plays, listeners FROM play_part WHERE kind = 1",
    ],
)
def test_a_wrong_part_is_named_and_repaired(store: Store, made: Catalog, damage: str) -> None:
    before = counted(store)
    store.write(partial(sql.run, damage)).result()
    wrong = verify.run(store, check=True, on_progress=ignore)
    assert wrong.differing > 0
    assert all(", the two hours from " in each.row for each in wrong.differences)
    assert verify.run(store, check=False, on_progress=ignore).differing == wrong.differing
    assert verify.run(store, check=True, on_progress=ignore).differing == 0
    assert counted(store) == before
    agrees(store, made, 50_000)


def test_a_stale_part_is_replaced_by_the_128th_play(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    first = YESTERDAY * day_parts.PER_DAY
    stale = partial(PlayPart.create, kind=TRACK, subject=made.tracks[1], part=first, plays=9, listeners=b"")
    store.write(stale).result()
    plays = [(made.tracks[1], MIDNIGHT + n * 10 * SECOND, str(n)) for n in range(128)]
    store.write(partial(made.add_plays, plays)).result()
    agrees(store, made, 3 * 3600)


def test_parts_that_are_not_complete_are_not_used(store: Store, made: Catalog) -> None:
    store.write(partial(sql.run, "DELETE FROM play_part WHERE part - part / 12 * 12 = 5")).result()
    agrees(store, made, 50_000)
