"""Daily play counts are found by days, kinds and ids, all of which are in one integer key."""

from datetime import date
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.store.engine.sql import fetch, run_many
from musicsvc.store.engine.store import Store
from musicsvc.store.plays import daily
from musicsvc.store.plays.rollups.tables import Key
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

FIRST_DAY, LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
KEYS = st.tuples(
    st.integers(FIRST_DAY, LAST_DAY), st.sampled_from([TRACK, ALBUM, ARTIST]), st.integers(1, daily.LAST_ID)
)
ROWS = {  # (day, kind, id)
    (-1, TRACK, 5),
    (0, TRACK, 1),
    (20_000, TRACK, 5),
    (20_000, TRACK, 6),
    (20_000, TRACK, 9),
    (20_000, TRACK, daily.LAST_ID),
    (20_000, ALBUM, 1),
    (20_000, ALBUM, 5),
    (20_000, ARTIST, 5),
    (20_001, TRACK, 7),
    (20_001, ARTIST, daily.LAST_ID),
    (20_002, TRACK, 5),
    (20_002, TRACK, 6),
    (20_003, TRACK, 5),
}
PARTS = f"{daily.DAY}, {daily.KIND}, {daily.SUBJECT}"


@given(KEYS, KEYS)
def test_keys_have_the_order_of_their_parts(one: Key, other: Key) -> None:
    assert daily.parts(daily.key(*one)) == one
    assert (daily.key(*one) < daily.key(*other)) == (one < other)
    assert -(1 << 63) <= daily.key(*one) < 1 << 63


@pytest.fixture
def stored(store: Store) -> Store:
    """A store with the daily counts ROWS."""
    insert = "INSERT INTO play_day (key, plays, listeners, histogram) VALUES (?, 1, ?, ?)"
    store.write(lambda: run_many(insert, [(daily.key(*each), b"", b"") for each in ROWS])).result()
    return store


def found(store: Store, source: str, values: list[object]) -> list[Key]:
    """Return the sorted parts of the keys of these rows."""
    query = f"SELECT {PARTS} FROM {source}"
    return sorted((day, kind, subject) for day, kind, subject in store.read(partial(fetch, query, *values)).result())


def test_rows_are_those_of_the_days_the_kind_and_the_ids(stored: Store) -> None:
    rows = stored.read(lambda: daily.rows({20_002, 20_000, -1, 19_999}, TRACK, {5, 9, 10})).result()
    assert found(stored, *rows) == [(-1, TRACK, 5), (20_000, TRACK, 5), (20_000, TRACK, 9), (20_002, TRACK, 5)]
    (query, values) = stored.read(lambda: daily.rows([20_000, 20_002], TRACK, [5, 6])).result()
    assert found(stored, f"{query} AND key < ?", [*values, daily.key(20_002, TRACK, 6)]) == [
        (20_000, TRACK, 5),
        (20_000, TRACK, 6),
        (20_002, TRACK, 5),
    ]


def test_rows_of_keys_are_those_that_exist(stored: Store) -> None:
    wanted = [(20_002, TRACK, 6), (20_002, TRACK, 7), (20_000, ARTIST, 5), (-1, TRACK, 5)]
    query = f"SELECT {PARTS} FROM {{rows}}"
    rows = stored.read(lambda: daily.fetch_keys(query, [daily.key(*each) for each in wanted])).result()
    assert sorted(rows) == [(-1, TRACK, 5), (20_000, ARTIST, 5), (20_002, TRACK, 6)]
    assert stored.read(lambda: daily.fetch_keys(query, [])).result() == []


@pytest.mark.parametrize("days", [[20_000], [20_000, 20_001, 20_003], range(-5, 20_003)])
@pytest.mark.parametrize(("first", "last"), [(5, 6), (6, 9), (1, daily.LAST_ID), (10, 11)])
def test_rows_between_two_ids_include_both(stored: Store, days: list[int] | range, first: int, last: int) -> None:
    rows = stored.read(lambda: daily.rows_between(days, TRACK, first, last)).result()
    assert found(stored, *rows) == sorted(
        each for each in ROWS if each[0] in days and each[1] == TRACK and first <= each[2] <= last
    )


def test_ids_with_few_gaps_are_read_as_one_range(stored: Store) -> None:
    close = stored.read(lambda: daily.dense_rows([20_000, 20_001], TRACK, [5, 7, 9])).result()
    assert found(stored, *close) == [
        (20_000, TRACK, 5),
        (20_000, TRACK, 6),
        (20_000, TRACK, 9),
        (20_001, TRACK, 7),
    ]
    far = stored.read(lambda: daily.dense_rows([20_000, 20_001], TRACK, [5, 9, 15])).result()
    assert found(stored, *far) == [(20_000, TRACK, 5), (20_000, TRACK, 9)]


def test_a_span_has_all_kinds_of_its_days(stored: Store) -> None:
    rows = found(stored, f"play_day WHERE {daily.IN_SPAN}", [*daily.span(range(20_001, 20_003))])
    assert rows == sorted(each for each in ROWS if each[0] in {20_001, 20_002})


def test_the_first_and_the_last_day(stored: Store) -> None:
    query = f"SELECT {daily.FIRST}, {daily.LAST}, {daily.FIRST_SINCE.format(since='?')}"
    for since, first in ((-5, -1), (0, 0), (1, 20_000), (20_001, 20_001), (20_004, None)):
        assert stored.read(partial(fetch, query, since)).result() == [(-1, 20_003, first)]


def test_there_is_no_first_and_last_day_without_plays(store: Store) -> None:
    query = f"SELECT {daily.FIRST}, {daily.LAST}, {daily.FIRST_SINCE.format(since='?')}"
    assert store.read(partial(fetch, query, 0)).result() == [(None, None, None)]


def test_no_rows_are_read_without_days_or_ids(stored: Store) -> None:
    query = f"SELECT {PARTS} FROM {{rows}}"
    assert stored.read(lambda: daily.fetch_rows(query, [], TRACK, [5])).result() == []
    assert stored.read(lambda: daily.fetch_rows(query, [20_000], TRACK, [])).result() == []
    assert stored.read(lambda: daily.fetch_rows(query, [20_000], TRACK, [5])).result() == [(20_000, TRACK, 5)]
