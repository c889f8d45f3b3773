"""Figures are the same from counts of days, of 8 days and of 32 days, late plays included."""

import random
from collections import Counter
from functools import partial
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.insights.listening import first_plays, milestones
from musicsvc.store.models import PlayCount
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest, verify
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT, Window
from musicsvc.store.plays.rollups import blocks, counts, listeners, reader
from musicsvc.store.plays.rollups.counts import BLOCK8, BLOCK32
from musicsvc.store.plays.rollups.listeners import FEW, WIDTH
from musicsvc.store.plays.rollups.reader import PlayStats, Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.conftest import NOW
from tests.support import databases, play_counts
from tests.support.listening_world import Catalog, catalog, record, withdraw
from tests.support.oracle import PlayOf
from tests.support.play_counts import roll_up
from tests.support.reported_plays import world

TODAY = NOW // DAY
LONG = 150  # days with plays
YEAR_1 = -719_162


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


@databases.prefilling
def prefilled(store: Store) -> Catalog:
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
    within = [play for play in played if first <= play.at // DAY < end]
    return len(within), len({play.listener for play in within})


def agrees(store: Store, made: Catalog, first: int, length: int) -> None:
    """Check that every way of reading returns the counts of the single plays in two windows and of all time."""
    later = Window("", first + length, first + 2 * length)
    names = subjects(made)
    past = {name: [play for play in made.past.plays if play.track in made.past.tracks(*name)] for name in _named(names)}
    for noun, subject in names:
        played = past[noun, subject.id]
        expected = [counts_of(played, each.first, each.end) for each in (later, later.before)]
        expected.append(counts_of(played, YEAR_1, TODAY + 2))
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
        numbers = store.read(partial(_plays, kind, ids, later)).result()
        assert {each: numbers.get(each, 0) for each in ids} == {
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


def plays_by_block(store: Store, subject: Subject, level: int = BLOCK8) -> dict[int, int]:
    """Return the plays in the blocks of which a subject has counts, by their first day."""
    rows = store.read(lambda: list(PlayCount.select(PlayCount.key, PlayCount.plays).tuples().iterator())).result()
    found = [(counts.parts(key), plays) for key, plays in rows]
    return {key.day: plays for key, plays in sorted(found) if (key.level, key.kind, key.id) == (level, *subject)}


@pytest.mark.slow
def test_every_window_equals_the_count_of_single_plays(store: Store, made: Catalog) -> None:
    last = (TODAY - 1) // 8 * 8
    assert [*plays_by_block(store, Subject(TRACK, made.tracks[0]))] == [*range(last - 13 * 8, last, 8)]
    assert plays_by_block(store, Subject(TRACK, made.tracks[4])) == {}
    chance = random.Random(5)

    for length in (1, 7, 8, 16, 30, 30, 30, 31, 64, 75):
        agrees(store, made, TODAY + 1 - 2 * length - chance.randrange(9), length)


def test_blocks_of_8_days_with_128_plays_on_days_with_at_least_16_are_counted(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    first = TODAY // 8 * 8 - 16
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
    assert plays_by_block(store, Subject(TRACK, often)) == {first: 128}
    assert plays_by_block(store, Subject(TRACK, rarely)) == {}


@pytest.mark.slow
@pytest.mark.parametrize(("level", "back"), [(BLOCK8, 20), (BLOCK32, 100)])
def test_late_plays_are_added_to_blocks(store: Store, made: Catalog, level: int, back: int) -> None:
    subject = Subject(ARTIST, made.artists[0])
    before = plays_by_block(store, subject, level)
    at = (TODAY - back) * DAY
    store.write(partial(made.add_plays, [(made.tracks[0], at, f"late {number}") for number in range(50)])).result()
    after = plays_by_block(store, subject, level)
    assert {day: after[day] - before[day] for day in after if after[day] != before[day]} == {
        (TODAY - back) // counts.DAYS[level] * counts.DAYS[level]: 50
    }
    agrees(store, made, TODAY + 1 - 60, 30)


@pytest.mark.slow
@pytest.mark.parametrize("day", [TODAY - 100, YEAR_1 + 4])
def test_a_late_first_play_of_a_block_of_32_days_counts(store: Store, made: Catalog, day: int) -> None:
    track = Subject(TRACK, made.tracks[4])
    assert plays_by_block(store, track, BLOCK32) == {}
    store.write(partial(made.add_plays, [(track.id, day * DAY, "late")])).result()
    assert plays_by_block(store, track, BLOCK32) == {day // 32 * 32: 1}
    for first, length in ((TODAY + 1 - 150, 75), (day - 40, 40), (day, TODAY - 90 - day)):
        agrees(store, made, first, length)
    assert store.read(partial(first_plays.by_id, TRACK, [track.id])).result() == {track.id: day}


def days_agree(store: Store, made: Catalog) -> None:
    """Check the plays and listeners by day, the milestones and first plays against single plays."""
    for noun, (kind, subject) in subjects(made):
        tracks = made.past.tracks(noun, subject)
        plays = [each for each in made.past.plays if each.track in tracks]
        heard = {(each.at // DAY, each.listener) for each in plays}
        days, people = Counter(each.at // DAY for each in plays), Counter(day for day, _ in heard)
        expected = {day: (count, people[day]) for day, count in days.items()}
        assert store.read(partial(reader.counts_by_day, kind, subject, range(TODAY + 1))).result() == expected
        span = range(TODAY - 80, TODAY - 3)
        shown = {day: each for day, each in expected.items() if day in span}
        assert store.read(partial(reader.counts_by_day, kind, subject, span)).result() == shown
        best = max(sorted(days), key=days.__getitem__, default=None)
        found = store.read(partial(milestones.build, Subject(kind, subject))).result()
        assert found.best_day == (None if best is None else (best, days[best]))
        times = sorted(each.at for each in plays)
        assert [each.at for each in found.plays] == [times[at - 1] for at in (100, 1_000, 10_000) if at <= len(times)]
        first = store.read(partial(first_plays.by_id, kind, [subject])).result()
        assert first == ({subject: min(days)} if days else {})


LIGHT = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.slow
@LIGHT
@given(
    batches=some.lists(some.sampled_from([1, 30, 400, 700]), min_size=1, max_size=3),
    undone=some.sampled_from([0, 1, 300]),
    seed=some.integers(0, 9),
)
def test_days_equal_single_plays_after_late_and_withdrawn_plays(
    store: Store, batches: list[int], undone: int, seed: int
) -> None:
    made = store.write(partial(catalog, NOW)).result()

    def old(chance: random.Random) -> int:
        return (TODAY - 90 + int(chance.triangular(0, 80, 9))) * DAY + chance.randrange(DAY)

    store.write(partial(made.add_plays, [(made.tracks[2], NOW, "today")])).result()
    roll_up(store)
    drawn = made.draw(seed, sum(batches), old)
    kept = {(play.track, play.at // SLOT, play.listener) for play in drawn}
    more = made.draw(seed + 10, undone, old)
    fresh = [play for play in more if (play.track, play.at // SLOT, play.listener) not in kept]
    store.write(partial(record, fresh, 7)).result()
    for count in batches:
        store.write(partial(made.add_plays, drawn[:count])).result()
        drawn = drawn[count:]
        store.write(partial(blocks.roll_up, 2)).result()
    withdraw(store, 7)
    days_agree(store, made)
    roll_up(store)
    days_agree(store, made)
    agrees(store, made, TODAY + 1 - 60, 30)
    assert verify.run(store, check=True, on_progress=lambda *_: None).differences == []


def test_old_blocks_of_8_days_are_deleted(store: Store, made: Catalog) -> None:
    chance = random.Random(9)
    store.write(partial(made.add_plays, plays(made, chance, 2500, range(-40, 1)))).result()
    roll_up(store)
    kept = plays_by_block(store, Subject(TRACK, made.tracks[0]))
    assert min(kept) == (TODAY + 40) // 8 * 8 - 13 * 8


def test_nothing_is_rolled_up_without_plays(store: Store) -> None:
    assert store.write(partial(blocks.roll_up, 9)).result() is False


# Packed sets of listeners are merged, appended to and counted in each of their forms.


def test_a_packed_set_has_as_many_listeners_as_its_union() -> None:
    chance = random.Random(2)
    for size in (0, 1, 5, 40, 900):
        some = [chance.randrange(1, 500) for _ in range(size)]
        for packed in (listeners.pack(some), listeners.merge([listeners.pack(some)])):
            for more in (b"", listeners.pack([3, 700, 3])):
                assert listeners.count(packed + more) == len(listeners.union([packed + more]))
                assert listeners.count(packed + more) == len({*some, *([3, 700] if more else [])})


@pytest.mark.parametrize("distance", [1, 70_000])
def test_sets_in_every_form_merge_to_their_union_in_every_order(distance: int) -> None:
    """A bitmap of consecutive ids is smaller than FEW integers, one of distant ids is larger."""
    sets = [set(range(7, 7 + size * distance, distance)) for size in (0, 1, FEW - 1, FEW, FEW + 1, 200)]
    sets.append({5, 6})
    forms = [
        (each, packed) for each in sets for packed in (listeners.pack(each), listeners.merge([listeners.pack(each)]))
    ]
    for (left, one), (right, other) in product(forms, forms):
        merged = listeners.merge([one, other])
        assert set(listeners.union([merged])) == left | right
        assert set(listeners.union([listeners.merge([other, merged, one])])) == left | right


def test_a_merged_set_holds_an_id_once_unless_it_is_small() -> None:
    assert listeners.merge([listeners.pack([4] * (FEW + 1))]) == listeners.pack([4])
    few = listeners.pack(range(FEW))
    assert listeners.merge([few, few]) == few
    assert len(listeners.merge([listeners.pack(range(1000))])) < FEW * WIDTH


def test_a_row_holds_at_most_64_ids_after_its_bitmap(store: Store) -> None:
    store.write(world).result()

    def play() -> list[int]:
        """Record plays of one listener one by one. Return the size of the row's set after each."""
        (person,) = listeners.ensure(["opaque:x"]).values()
        sizes: list[int] = []
        for slot in range(200):
            ingest.record([PlayRow(slot, 1, person, WITHOUT_ID, slot * SLOT, None, 0)])
            ((size,),) = fetch(f"SELECT length(listeners) FROM play_count WHERE {counts.KIND} = 1")
            sizes.append(size // WIDTH)
        return sizes

    assert store.write(play).result() == [*range(1, 64), *range(1, 65), *range(1, 65), *range(1, 10)]
