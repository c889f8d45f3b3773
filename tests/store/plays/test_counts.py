"""The level, period, kind and id of play counts are in one integer key."""

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import export_rows
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.rollups.counts import BLOCK8, BLOCK32, DAY, Key
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK

FIRST_DAY, LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
LAST_ID = 2**37 - 1
READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'play_count'"
KEYS = st.builds(
    Key,
    st.sampled_from([DAY, BLOCK8, BLOCK32]),
    st.integers(FIRST_DAY, LAST_DAY),
    st.sampled_from([TRACK, ALBUM, ARTIST]),
    st.integers(1, LAST_ID),
)


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


def test_ids_with_few_gaps_are_read_as_one_range(store: Store) -> None:
    days, first = counts.starts([20_000, 20_001]), TRACK << counts.ID_BITS

    def statements() -> tuple[list[str], list[str]]:
        dense = [counts.dense_rows(days, TRACK, ids)[0] for ids in ([5, 7, 9], [5, 9, 50])]
        return dense, [counts.rows_between(days, first, first)[0], counts.rows(days, TRACK, [5])[0]]

    dense, expected = store.read(statements).result()
    assert dense == expected


@pytest.mark.parametrize("gap", [1, 2, 3, 7, 8, 20])
def test_ids_with_gaps_are_found_among_others(store: Store, gap: int) -> None:
    days, ids = counts.starts([20_000, 20_003]), range(2, 61, gap)

    def read() -> list[Key]:
        kinds = (kind << counts.ID_BITS for kind in (TRACK, ALBUM))
        every = {day + kind + each for kind in kinds for day in days for each in range(1, 70)}
        counts.replace(every, dict.fromkeys(every, (1, 0, b"", b"")))
        source, values = counts.dense_rows(days, TRACK, ids)
        return [counts.parts(key) for (key,) in sql.fetch(counts.KEYS.format(rows=source), *values)]

    found = [(each.day, each.id) for each in store.write(read).result() if each.id in ids or gap > sql.DENSE]
    assert sorted(found) == [(day, each) for day in (20_000, 20_003) for each in ids]


@pytest.mark.only_on("postgres")
def test_rows_of_a_day_are_streamed_without_reading_those_of_others(store: Store) -> None:
    days, ids = counts.starts(range(20_000, 20_100)), range(1, 101)
    every = {day + (TRACK << counts.ID_BITS) + each for day in days for each in ids}
    store.write(lambda: counts.replace(every, dict.fromkeys(every, (1, 0, b"", b"")))).result()
    store.write(lambda: sql.run("ANALYZE play_count")).result()

    def read() -> tuple[int, int]:
        rows, values = counts.dense_rows(days[-1:], TRACK, ids)
        found = [*sql.stream_rows(export_rows.PLAYS_OF_DAY.format(rows=rows), *values)]
        ((fetched,),) = sql.fetch(READ)
        return len(found), fetched

    assert store.read(read).result() == (100, 100)
