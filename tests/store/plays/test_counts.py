"""Play counts are found by levels, periods, kinds and ids, all of which are in one integer key."""

from datetime import date
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.store.engine.sql import fetch, run_many
from musicsvc.store.engine.store import Store
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.rollups.counts import BLOCK8, BLOCK32, DAY, Key
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

FIRST_DAY, LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
LAST_ID = 2**37 - 1
KEYS = st.builds(
    Key,
    st.sampled_from([DAY, BLOCK8, BLOCK32]),
    st.integers(FIRST_DAY, LAST_DAY),
    st.sampled_from([TRACK, ALBUM, ARTIST]),
    st.integers(1, LAST_ID),
)
ROWS = {
    Key(DAY, -1, TRACK, 5),
    Key(DAY, 0, TRACK, 1),
    Key(DAY, 20_000, TRACK, 5),
    Key(DAY, 20_000, TRACK, 6),
    Key(DAY, 20_000, TRACK, 9),
    Key(DAY, 20_000, TRACK, LAST_ID),
    Key(DAY, 20_000, ALBUM, 1),
    Key(DAY, 20_000, ALBUM, 5),
    Key(DAY, 20_000, ARTIST, 5),
    Key(DAY, 20_001, TRACK, 7),
    Key(DAY, 20_001, ARTIST, LAST_ID),
    Key(DAY, 20_002, TRACK, 5),
    Key(DAY, 20_002, TRACK, 6),
    Key(BLOCK8, 20_000, TRACK, 5),
    Key(BLOCK32, 20_000, TRACK, 5),
}


@given(KEYS, KEYS)
def test_keys_have_the_order_of_their_parts(one: Key, other: Key) -> None:
    one, other = (counts.parts(counts.key(*each)) for each in (one, other))  # with the first days of their periods
    assert counts.parts(counts.key(*one)) == one
    assert (counts.key(*one) < counts.key(*other)) == (one < other)
    assert 0 < counts.key(*one) < 1 << 63


@given(KEYS.map(lambda key: key._replace(level=DAY)), st.sampled_from([BLOCK8, BLOCK32]))
def test_a_block_covers_the_days_that_are_in_it(day: Key, level: int) -> None:
    block = counts.cover(level, counts.key(*day))
    days = counts.days_of(block)
    assert (len(days), days.start % len(days), day.day in days) == (counts.DAYS[level], 0, True)
    assert counts.parts(block) == (level, days.start, day.kind, day.id)
    assert counts.start(level, day.day) <= block <= counts.start(level, day.day) + counts.REST


def test_levels_follow_each_other() -> None:
    spans = [[counts.start(level, day) for day in (FIRST_DAY, LAST_DAY)] for level in (DAY, BLOCK8, BLOCK32)]
    assert all(last + counts.REST < first for (_, last), (first, _) in pairwise(spans))


@pytest.fixture
def stored(store: Store) -> Store:
    """A store with the play counts ROWS."""
    insert = "INSERT INTO play_count (key, plays, own, listeners, histogram) VALUES (?, 1, 0, ?, ?)"
    store.write(lambda: run_many(insert, [(counts.key(*each), b"", b"") for each in ROWS])).result()
    return store


def found(store: Store, source: str, values: list[object]) -> list[tuple[int, int, int]]:
    """Return the sorted days, kinds and ids of these rows."""
    rows = store.read(partial(fetch, f"SELECT key FROM {source}", *values)).result()
    return sorted(counts.parts(key)[1:] for (key,) in rows)


def test_rows_are_those_of_the_periods_the_kind_and_the_ids(stored: Store) -> None:
    rows = stored.read(lambda: counts.rows(counts.starts({20_002, 20_000, -1, 19_999}), TRACK, {5, 9, 10})).result()
    assert found(stored, *rows) == [(-1, TRACK, 5), (20_000, TRACK, 5), (20_000, TRACK, 9), (20_002, TRACK, 5)]
    mixed = [counts.start(BLOCK8, 20_003), counts.start(DAY, 20_002), counts.start(BLOCK32, 19_999)]
    rows = stored.read(lambda: counts.rows(mixed, TRACK, [5, 6])).result()
    assert found(stored, *rows) == [(20_000, TRACK, 5), (20_002, TRACK, 5), (20_002, TRACK, 6)]


def test_rows_of_keys_are_those_that_exist(stored: Store) -> None:
    wanted = [(20_002, TRACK, 6), (20_002, TRACK, 7), (20_000, ARTIST, 5), (-1, TRACK, 5)]
    query = f"SELECT {counts.OF_DAY}, {counts.KIND}, {counts.SUBJECT} FROM {{rows}}"
    rows = stored.read(lambda: counts.fetch_keys(query, [counts.key(DAY, *each) for each in wanted])).result()
    assert sorted(rows) == [(-1, TRACK, 5), (20_000, ARTIST, 5), (20_002, TRACK, 6)]
    assert stored.read(lambda: counts.fetch_keys(query, [])).result() == []


def test_rows_between_two_places_of_a_period_are_those_of_all_its_kinds(stored: Store) -> None:
    first, end = counts.key(DAY, 20_000, TRACK, 9), counts.key(DAY, 20_000, ALBUM, 5)
    days = counts.starts([20_000, 20_001])
    rows = stored.read(lambda: counts.rows_between(days, first - days[0], end - days[0])).result()
    assert found(stored, *rows) == [(20_000, TRACK, 9), (20_000, TRACK, LAST_ID), (20_000, ALBUM, 1)]


def test_ids_with_few_gaps_are_read_as_one_range(stored: Store) -> None:
    days = counts.starts([20_000, 20_001])
    close = stored.read(lambda: counts.dense_rows(days, TRACK, [5, 7, 9])).result()
    assert found(stored, *close) == [
        (20_000, TRACK, 5),
        (20_000, TRACK, 6),
        (20_000, TRACK, 9),
        (20_001, TRACK, 7),
    ]
    far = stored.read(lambda: counts.dense_rows(days, TRACK, [5, 9, 15])).result()
    assert found(stored, *far) == [(20_000, TRACK, 5), (20_000, TRACK, 9)]


def test_a_span_has_all_kinds_of_its_days(stored: Store) -> None:
    rows = found(stored, f"play_count WHERE {counts.IN_SPAN}", [*counts.span(range(20_001, 20_003))])
    assert rows == sorted(tuple(each[1:]) for each in ROWS if each.level == DAY and each.day in {20_001, 20_002})


def test_no_rows_are_read_without_periods_or_ids(stored: Store) -> None:
    query, days = "SELECT key FROM {rows}", counts.starts([20_000])
    assert stored.read(lambda: counts.fetch_rows(query, [], TRACK, [5])).result() == []
    assert stored.read(lambda: counts.fetch_rows(query, days, TRACK, [])).result() == []
    rows = stored.read(lambda: counts.fetch_rows(query, days, TRACK, [5])).result()
    assert [each for (each,) in rows] == [counts.key(DAY, 20_000, TRACK, 5)]
