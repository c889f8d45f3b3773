"""Upserts that return the few rows with a large sum."""

from collections.abc import Sequence
from functools import partial

import pytest

from musicsvc.store.engine import bulk, sql
from musicsvc.store.engine.store import Store

COLUMNS = ("track_id", "plays")
STORED = {1: 5, 2: 3, 3: 900, 4: 1}


def _add(rows: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Add plays to the totals of tracks. Return those of the noted sums that are at least 10, by track."""
    total = bulk.sum_noting("track_plays.plays", "excluded.plays", 10, ["track_plays.track_id"])
    statement = f"INSERT INTO track_plays {{rows}} ON CONFLICT (track_id) DO UPDATE SET plays = {total}"
    found = bulk.insert_noting(statement, ("bigint", "bigint"), rows, COLUMNS)
    if sql.is_sqlite():
        assert all(plays >= 10 for _, plays in found)
    return {track: plays for track, plays in found if track in STORED and plays >= 10}


def test_an_upsert_returns_the_sums_that_are_large(store: Store) -> None:
    def unit() -> tuple[dict[int, int], dict[int, int]]:
        return _add(list(STORED.items())), _add([(1, 4), (2, 7), (3, 2), (4, 30), (5, 8), (6, 11)])

    first, second = store.write(unit).result()
    assert first.keys() <= {3}
    assert second == {2: 10, 3: 902, 4: 31}
    totals = dict(store.read(lambda: sql.fetch("SELECT track_id, plays FROM track_plays")).result())
    assert totals == {1: 9, 2: 10, 3: 902, 4: 31, 5: 8, 6: 11}


@pytest.mark.only_on("sqlite")
def test_a_statement_that_nobody_listens_to_cannot_note_rows(store: Store) -> None:
    with pytest.raises(RuntimeError, match=r"noted\(\) is for statements in a block of noted_rows\(\)"):
        store.write(partial(sql.run, "INSERT INTO track_plays SELECT 1, noted(7)")).result()


def test_noted_rows_belong_to_the_innermost_block() -> None:
    with bulk.noted_rows() as outer:
        with bulk.noted_rows() as inner:
            assert bulk.note_row(1, 2) == 2
        assert bulk.note_row(3, 4, 5) == 5
    assert (outer, inner) == ([(3, 4, 5)], [(1, 2)])
