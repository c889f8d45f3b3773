"""Rows of exports equal the figures of the endpoints, in every scope."""

import random
from functools import partial

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.errors import NotFound
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import export_rows
from musicsvc.store.insights.export_rows import ExportRow
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Album, Track
from musicsvc.store.plays.periods import SLOT, Window, window
from musicsvc.store.plays.rollups import blocks
from tests.conftest import NOW
from tests.support import databases
from tests.support.bounds import Bounds
from tests.support.listening_world import Catalog, catalog
from tests.support.query_count import queries


@databases.prefilling
def prefilled(store: Store) -> Catalog:
    """The catalog of listening_world with two years of plays, partly rolled up, beside another account's."""
    chance = random.Random(3)

    def fill() -> Catalog:
        other, made = catalog(NOW), catalog(NOW)
        for _ in range(2):
            for each in (made, other):
                each.add_plays(_heard(each, chance, NOW))
            while blocks.roll_up(100):
                pass
        given = [[(made.tracks[chance.randrange(4)], NOW - chance.randrange(90) * DAY) for _ in range(9)] for _ in "lr"]
        made.give(*given)
        return made

    return store.write(fill).result()


def _heard(made: Catalog, chance: random.Random, now: int) -> list[tuple[int, int, str]]:
    days = [min(int(chance.expovariate(1 / 80)), 790) for _ in range(400)]
    return [
        (made.tracks[chance.choice((0, 0, 1, 2, 3))], now - day * DAY - chance.randrange(2000) * SLOT, str(number % 40))
        for number, day in enumerate(days)
    ]


@pytest.mark.only_on("sqlite")
def test_large_scopes_are_read_without_the_memory_map(store: Store, clock: MovableClock, bounds: Bounds) -> None:
    now = clock.now()
    made = store.write(partial(catalog, now)).result()
    scope = Scope(made.manager.user_id)

    def mapped() -> int:
        with export_rows.cells("tracks", scope, window("7-days", now)):
            return int(sql.fetch("PRAGMA mmap_size")[0][0])

    bounds(few_tracks=len(made.tracks))
    assert store.read(mapped).result() > 0
    bounds(few_tracks=len(made.tracks) - 1)
    assert store.read(mapped).result() == 0


def test_figures_do_not_depend_on_the_distance_of_ids(
    store: Store, clock: MovableClock, made: Catalog, bounds: Bounds
) -> None:
    days = window("90-days", clock.now())

    def read() -> list[tuple[object, ...]]:
        scope = Scope(made.manager.user_id)
        found: list[tuple[object, ...]] = []
        for type_ in export_rows.COLUMNS:
            with export_rows.cells(type_, scope, days) as rows:
                found += rows
        return found

    close = store.read(read).result()
    bounds(dense=0, subjects_per_batch=2, tracks_per_batch=2)
    assert store.read(read).result() == close


def _rows(kind: int, scope: Scope, days: Window) -> list[ExportRow]:
    return list(export_rows.rows(kind, scope, days))


def test_daily_rows_keep_the_artists_of_a_limited_number_of_tracks(
    store: Store, clock: MovableClock, made: Catalog, bounds: Bounds
) -> None:
    read = partial(export_rows.daily_plays, Scope(), window("7-days", clock.now()))
    with queries(store) as few:
        rows = store.read(lambda: list(read())).result()
    assert len({row[1] for row in rows}) == 2 * len(made.tracks) - 2  # of both accounts, each with a silent one
    bounds(subjects_per_batch=2, tracks_per_batch=3)
    with queries(store) as many:
        assert store.read(lambda: list(read())).result() == rows
    of_artists = [sum("track_artist" in each.sql for each in statements) for statements in (few, many)]
    assert 1 <= of_artists[0] <= 7 < of_artists[1]


@pytest.mark.usefixtures("made")
def test_days_without_plays_cost_one_query_each(store: Store, clock: MovableClock) -> None:
    today = clock.now() // DAY
    silent = Window("", today - 2000, today - 1990)
    with queries(store) as statements:
        assert store.read(lambda: list(export_rows.daily_plays(Scope(), silent))).result() == []
    assert sum("play_count" in each.sql for each in statements) == silent.days


def test_a_scope_may_be_an_artist_or_everything(store: Store, clock: MovableClock, made: Catalog) -> None:
    days = window("30-days", clock.now())

    def ids(scope: Scope) -> list[int]:
        return [row.id for row in store.read(partial(_rows, 1, scope, days)).result()]

    assert ids(Scope(artist=made.artists[1])) == [made.tracks[each] for each in (1, 2, 3)]
    assert ids(Scope(made.manager.user_id, made.artists[2])) == [made.tracks[each] for each in (3, 4)]
    assert ids(Scope(manager=0)) == []
    assert len(ids(Scope())) == 10
    with pytest.raises(NotFound):
        ids(Scope(artist=999))


def test_a_track_without_release_date_has_that_of_its_album(store: Store, clock: MovableClock, made: Catalog) -> None:
    days, scope = window("30-days", clock.now()), Scope(made.manager.user_id)

    def release() -> None:
        Album.update(release_date="1899-09-18").where(Album.id == made.albums[0]).execute()
        Track.update(release_date="1901-02-03").where(Track.id == made.tracks[1]).execute()

    store.write(release).result()
    found = [row.named.codes[-1] for row in store.read(partial(_rows, 1, scope, days)).result()]
    assert found == ["1899-09-18", "1901-02-03", "1911-02-03", None, None]


def test_the_number_of_queries_does_not_grow_with_the_rows(store: Store, clock: MovableClock, made: Catalog) -> None:
    days = window("30-days", clock.now())

    def read(scope: Scope) -> None:
        with export_rows.cells("tracks", scope, days) as rows:
            assert list(rows)

    def asked(scope: Scope) -> int:
        with queries(store) as statements:
            store.read(partial(read, scope)).result()
        return len(statements)

    # Two queries look for the artist: for its tracks, and for plays of tracks that were deleted.
    # One looks for first plays in days of no block yet, of tracks that have no block.
    assert 0 <= asked(Scope()) - (asked(Scope(artist=made.artists[0])) - 2) <= 1
