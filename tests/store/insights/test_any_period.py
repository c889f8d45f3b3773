"""Figures of windows that begin and end anywhere equal a plain count of single plays."""

from datetime import date, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, SECOND
from musicsvc.server.handlers.insights import data_of
from musicsvc.server.shapes import insights as shapes
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import charts, export_rows, overview
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Play, PlayProgress
from musicsvc.store.plays import history, periods, retention
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.subjects import ALBUM, ARTIST, KINDS, TRACK, Subject
from musicsvc.store.recounting import explain
from tests.conftest import NOW
from tests.support import export_files
from tests.support.examples import examples
from tests.support.listening_world import TRACKS, Catalog, catalog, record, withdraw
from tests.support.oracle import PlayOf, bounds, day
from tests.support.play_counts import roll_up

TODAY = NOW // DAY
EARLIEST = 150  # days before today: four months of 32 days, and more weeks than have rollups
RUN = 7  # the number of an import

back = some.one_of(some.sampled_from([0, 1, 6, 7, 8, 29, 30, 31, 32, 59, 60, 61]), some.integers(0, EARLIEST))
# Times of a day, some of them near the time of now: (whether it is relative to now, microseconds).
time = some.one_of(
    some.tuples(some.just(False), some.integers(0, DAY // SLOT - 1).map(SLOT.__mul__)),
    some.tuples(some.just(True), some.sampled_from([-SLOT, -SECOND, -1, 0, 1, SECOND, SLOT])),
)
play = some.tuples(some.integers(0, len(TRACKS) - 2), back, time, some.integers(1, 6).map(str))
LIGHT = settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.slow
@pytest.mark.usefixtures("weeks_of_rare_plays")
@LIGHT
@given(
    heard=some.lists(some.lists(play, max_size=25), min_size=1, max_size=3),
    undone=some.lists(play, max_size=10),
    rolled_up=some.integers(0, 3),
    elapsed=some.one_of(some.sampled_from([0, 1, SECOND, DAY - 1]), some.integers(0, DAY - 1)),
    dates=some.lists(some.tuples(back, back), min_size=2, max_size=4),
)
def test_windows_that_begin_and_end_anywhere(
    store: Store, heard: Any, undone: Any, rolled_up: int, elapsed: int, dates: list[tuple[int, int]]
) -> None:
    now = TODAY * DAY + elapsed
    made = store.write(partial(catalog, NOW)).result()
    batches = [[_at(made, each, elapsed) for each in batch] for batch in heard]
    kept = {(track, at // SLOT, name) for batch in batches for track, at, name in batch}
    later = [
        each
        for each in (_at(made, each, elapsed) for each in undone)
        if (each[0], each[1] // SLOT, each[2]) not in kept
    ]
    for number, batch in enumerate(batches):
        store.write(partial(made.add_plays, batch)).result()
        if number == 0:
            store.write(partial(record, [PlayOf(*each) for each in later], RUN)).result()
        if number < rolled_up:
            roll_up(store)
    withdraw(store, RUN)

    windows = [(TODAY - max(each), TODAY - min(each)) for each in dates]
    # The window before ends within a day that has plays.
    windows += [(at // DAY + 1, TODAY) for _, at, _ in batches[0][:3] if at // DAY < TODAY]
    for first, last in windows:
        _check(store, made, (_iso(first), _iso(last)), now)
    for first, last in windows[-2:]:
        _check_exports(store, made, (_iso(first), _iso(last)), now)


def _check(store: Store, made: Catalog, chosen: tuple[str, str], now: int) -> None:
    """Compare all figures of a window with a plain count."""
    past = made.past
    first, last = map(date.fromisoformat, chosen)
    window = periods.between(first, last, now)
    for track in made.tracks[:2]:
        subject = Subject(TRACK, track)
        assert store.read(partial(data_of, subject, window)).result() == past.figures("track", track, chosen, now)
    album = Subject(ALBUM, made.albums[0])
    assert store.read(partial(data_of, album, window)).result() == past.album(album.id, chosen, now)
    artist = Subject(ARTIST, made.artists[1])
    expected = past.artist(artist.id, chosen, now, followers=0)
    assert store.read(partial(data_of, artist, window)).result() == expected
    chart = store.read(partial(charts.build, artist, window)).result()
    assert shapes.chart(chart) == past.chart("artist", artist.id, chosen, now)
    assert store.read(partial(explain.build, artist, window, now)).result().differences == []

    past.by_artist[0] = made.tracks
    found = store.read(partial(overview.build_for_print, Scope(made.manager.user_id), window, now)).result()
    assert shapes.figures(found.figures) == past.figures("artist", 0, chosen, now)
    assert [row.plays_change for row in found.top] == [
        past.figures("track", row.ranked.id, chosen, now)["growth"]["plays_change"] for row in found.top
    ]
    _, _, begins, ends = bounds(chosen, now)
    compared = [day(play.at) for play in past.plays if begins <= play.at < ends]
    assert [each.plays for each in found.before] == [compared.count(day(at)) for at in range(begins, ends, DAY)]


def _check_exports(store: Store, made: Catalog, chosen: tuple[str, str], now: int) -> None:
    """Compare the rows of exports of a window with a plain count."""
    first, last = map(date.fromisoformat, chosen)
    window, scope = periods.between(first, last, now), Scope(made.manager.user_id)

    def rows(kind: int) -> dict[int, Any]:
        return {row.id: shapes.figures(row.figures) for row in export_rows.rows(kind, scope, window)}

    for noun, kind in KINDS.items():
        ids = {"track": made.tracks, "album": made.albums, "artist": made.artists}[noun]
        expected = {each: made.past.figures(noun, each, chosen, now) for each in ids}
        assert store.read(partial(rows, kind)).result() == expected
    days = store.read(lambda: list(export_rows.daily_plays(scope, window))).result()
    assert [row[:3] + row[4:6] for row in days] == [
        tuple(row.values()) for row in export_files.expected(made.past, "plays", chosen, now)
    ]


def _at(made: Catalog, play: tuple[int, int, tuple[bool, int], str], elapsed: int) -> tuple[int, int, str]:
    """Return a drawn play as (track's id, time, listener's name)."""
    track, days, (relative, at), name = play
    return made.tracks[track], (TODAY - days) * DAY + min(max(at + relative * elapsed, 0), DAY - 1), name


def _iso(number: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=number)).isoformat()


def test_all_begins_with_the_first_play_or_like(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    window = periods.window(periods.ALL, NOW)
    assert store.read(partial(history.adapt, window)).result().days == 1
    store.write(partial(made.add_plays, [(made.tracks[0], NOW - 50 * DAY, "a"), (made.tracks[0], NOW, "b")])).result()
    assert store.read(partial(history.adapt, window)).result().days == 51
    store.write(partial(made.give, [(made.tracks[1], NOW - 60 * DAY)], [])).result()

    everything = store.read(partial(history.adapt, window)).result()

    assert everything.days == 61
    found = store.read(lambda: data_of(Subject(ARTIST, made.artists[0]), everything)).result()
    assert found["plays"] == {"total": 2, "period": 2}
    assert found["engagement"]["likes"] == 1
    assert found["growth"] == {"plays_change": None, "listeners_change": None, "first_play": _iso(TODAY - 50)}


def test_the_whole_last_day_counts_once_its_single_plays_are_deleted(store: Store) -> None:
    made = store.write(partial(catalog, NOW)).result()
    track, week = made.tracks[0], periods.window("7-days", NOW)
    plays = [(track, NOW, "a"), (track, NOW, "b"), (track, NOW, "c")]
    plays += [(track, NOW - 7 * DAY - SECOND, "a"), (track, NOW - 7 * DAY + SECOND, "b")]
    store.write(partial(made.add_plays, plays)).result()

    def growth() -> list[Any]:
        adapted = store.read(partial(history.adapt, week)).result()
        subject = Subject(TRACK, track)
        served = [store.read(partial(data_of, subject, each)).result()["growth"] for each in (week, adapted)]
        assert served[0] == served[1]
        return [*list(served[0].values())[:2], shapes.growth_basis(adapted)]

    assert growth() == [200.0, 200.0, "like-for-like"]
    retention.prune(store, 6, now=NOW, on_progress=lambda _done, _all: None)
    assert store.read(lambda: Play.select().count()).result() == 3
    assert store.read(lambda: PlayProgress.get().kept_from).result() == week.first
    assert growth() == [50.0, 50.0, "whole-day"]
    assert [PlayOf(*each) for each in plays] == made.past.plays
