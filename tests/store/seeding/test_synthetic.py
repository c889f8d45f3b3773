"""`seed --scale`: a synthetic catalog of any size."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from musicsvc.errors import Invalid
from musicsvc.store import opening
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track
from musicsvc.store.seeding import synthetic

TABLES = ("artist", "album", "track", "album_artist", "track_artist", "track_genre", "track_tag", "genre", "tag")


def quiet(done: float, total: float) -> None:
    assert 0 < done <= total


def rows(store: Store) -> dict[str, list[Any]]:
    def unit() -> dict[str, list[Any]]:
        found = {table: current().execute_sql(f"SELECT * FROM {table}").fetchall() for table in TABLES}
        return {table: sorted(map(tuple, some), key=str) for table, some in found.items()}

    return store.read(unit).result()


@pytest.mark.slow
def test_the_sizes_are_those_of_the_scale(store: Store) -> None:
    heard: list[tuple[float, float]] = []
    summary = synthetic.create(store, 0.1, 1, on_progress=lambda done, total: heard.append((done, total)))
    assert summary == synthetic.SyntheticSummary(artists=100, albums=400, tracks=2000)
    # A later version finds by these ids what this one has made.
    ids = store.read(lambda: {each.external_id for each in Track.select()}).result()
    assert ids == {f"made:0.1:1:{number}" for number in range(2000)}
    genres = Counter(track for track, _ in rows(store)["track_genre"])
    assert (len(genres), set(genres.values())) == (2000, {1, 2})
    assert heard[-1] == (2000, 2000)
    assert len(heard) == 3


def test_the_same_scale_and_seed_make_the_same_rows_and_another_seed_others(new_database: Callable[..., str]) -> None:
    def rows_of(scale: float, seed: int) -> dict[str, list[Any]]:
        with opening.connect(new_database()) as store:
            synthetic.create(store, scale, seed, on_progress=quiet)
            return rows(store)

    first = rows_of(0.02, 7)
    assert rows_of(0.02, 7) == first
    assert rows_of(0.02, 8)["track"] != first["track"]


@pytest.mark.slow
def test_a_second_run_makes_nothing_and_a_run_cut_short_is_finished(new_database: Callable[..., str]) -> None:
    def stop(_done: float, _total: float) -> None:
        raise InterruptedError

    with opening.connect(new_database()) as store:
        with pytest.raises(InterruptedError):
            synthetic.create(store, 0.1, 1, on_progress=stop)
        assert synthetic.create(store, 0.1, 1, on_progress=quiet).artists == 60
        assert synthetic.create(store, 0.1, 1, on_progress=quiet) == synthetic.SyntheticSummary()
        finished = rows(store)
    with opening.connect(new_database()) as store:
        synthetic.create(store, 0.1, 1, on_progress=quiet)
        assert rows(store) == finished


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # a seed gives the same catalog on both
def test_sizes_differ_as_in_life(store: Store) -> None:
    synthetic.create(store, 0.1, 1, on_progress=quiet)
    counts = sorted(
        store.read(
            lambda: [row[0] for row in current().execute_sql("SELECT count(*) FROM album_artist GROUP BY artist_id")]
        ).result()
    )
    assert counts[0] == 1
    assert counts[-1] > 5 * counts[len(counts) // 2]


def test_a_catalog_of_hardly_any_size_is_one_track(store: Store) -> None:
    assert synthetic.create(store, 0.000001, 1, on_progress=quiet) == synthetic.SyntheticSummary(
        artists=1, albums=1, tracks=1
    )


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 10_001])
def test_a_scale_that_is_none_is_refused(store: Store, scale: float) -> None:
    with pytest.raises(Invalid):
        synthetic.create(store, scale, 1, on_progress=quiet)
