"""Figures equal a recount of single plays for any plays, order and batches."""

from functools import partial
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, MINUTE
from musicsvc.errors import Forbidden
from musicsvc.server.handlers import insights as handlers
from musicsvc.server.schemas.periods import PeriodName, PeriodQuery, TimeframeName, TimeframeQuery
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import collaborations
from musicsvc.store.insights import figures as insight_figures
from musicsvc.store.models import Artist, Track
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.conftest import NOW
from tests.support.examples import examples
from tests.support.listening_world import TRACKS, Catalog, catalog
from tests.support.play_counts import roll_up

TODAY = NOW // DAY
EDGES = [0, 1, 5, 6, 7, 8, 13, 14, 15, 28, 29, 30, 31, 58, 59, 60, 61, 88, 89, 90, 91, 178, 179, 180, 181]
EDGES += [363, 364, 365, 366, 728, 729, 730, 731, 2000]
SLOTS = DAY // SLOT

# (track, day before today, half minute, listener); those of today are over, or five minutes ahead at most.
moment = some.tuples(
    some.one_of(some.sampled_from(EDGES), some.integers(0, 100)),
    some.one_of(some.sampled_from([0, 1, SLOTS - 1]), some.integers(0, SLOTS - 1)),
).map(lambda drawn: min((TODAY - drawn[0]) * DAY + drawn[1] * SLOT, NOW + 5 * MINUTE))
play = some.tuples(some.integers(0, len(TRACKS) - 2), moment, some.integers(1, 9).map(str))
given_to = some.lists(some.tuples(some.integers(0, len(TRACKS) - 1), moment), max_size=6)
batches = some.lists(some.lists(play, max_size=25), max_size=4)
LIGHT = settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])


def filled(store: Store, heard: list[list[tuple[int, int, str]]], folded: int = 0) -> Catalog:
    """Create a catalog with these plays, one unit per batch, and roll up after each of the first batches."""
    made = store.write(partial(catalog, NOW)).result()
    for number, batch in enumerate(heard):
        store.write(partial(made.add_plays, [(made.tracks[track], at, name) for track, at, name in batch])).result()
        if number < folded:
            roll_up(store)
    return made


def data(store: Store, handler: Any, subject: Subject, **query: Any) -> Any:
    """Return `data` of the endpoint's answer."""
    sources: dict[str, Any] = {"now": NOW}
    if "period" in query:
        sources["query"] = PeriodQuery(period=query["period"])
    if "timeframe" in query:
        sources["query"] = TimeframeQuery(timeframe=query["timeframe"])
    return store.read(lambda: handler(subject, **sources)).result()["data"]


@pytest.mark.slow
@LIGHT
@given(heard=batches, likes=given_to, reposts=given_to, folded=some.integers(0, 3))
def test_every_figure_equals_a_recount_of_single_plays(
    store: Store, heard: list[Any], likes: list[Any], reposts: list[Any], folded: int
) -> None:
    made = filled(store, heard, folded)
    liked, reposted = ([(made.tracks[track], at) for track, at in each] for each in (likes, reposts))
    store.write(partial(made.give, liked, reposted)).result()
    past = made.past

    for period in periods.DAYS:
        for track in made.tracks:
            found = data(store, handlers.show, Subject(TRACK, track), period=period)
            assert found == past.figures("track", track, period, NOW)
        for album in made.albums:
            found = data(store, handlers.show, Subject(ALBUM, album), period=period)
            assert found == past.album(album, period, NOW)
        for artist in made.artists:
            found = data(store, handlers.show, Subject(ARTIST, artist), period=period)
            assert found == past.artist(artist, period, NOW, followers=0)
    for timeframe in periods.TIMEFRAMES:
        for noun, subject in (
            ("track", Subject(TRACK, made.tracks[1])),
            ("album", Subject(ALBUM, made.albums[0])),
            ("artist", Subject(ARTIST, made.artists[1])),
        ):
            found = data(store, handlers.chart, subject, timeframe=timeframe)
            assert found == past.chart(noun, subject.id, timeframe, NOW)


@pytest.mark.slow
@LIGHT
@given(heard=some.lists(play, max_size=60))
def test_collaborations_are_those_counted_by_hand(store: Store, heard: list[Any]) -> None:
    made = filled(store, [heard])

    for artist in made.artists:
        found = store.read(partial(collaborations.load, artist)).result()
        total, partners, tracks = made.past.collaborations(artist)
        assert found.total == total
        assert [(each.id, each.tracks_count, each.plays) for each in found.collaborators] == partners
        assert found.track_ids == tracks


@pytest.mark.parametrize(
    ("now", "before", "percent"),
    [
        *((3, 2, 50.0), (1, 3, -66.7), (0, 5, -100.0), (5, 0, None), (0, 0, None), (2, 2, 0.0), (1999, 2000, -0.1)),
        *((409, 400, 2.3), (391, 400, -2.3), (411, 400, 2.8), (389, 400, -2.8)),  # halves away from zero
        *((13, 16, -18.8), (19, 16, 18.8), (4999, 5000, 0.0)),
    ],
)
def test_growth_is_in_percent_with_one_decimal_and_null_from_zero(now: int, before: int, percent: float | None) -> None:
    assert insight_figures.change(now, before) == percent


def test_the_names_of_periods_are_the_same_everywhere() -> None:
    assert set(get_args(PeriodName)) == set(periods.DAYS)
    assert set(get_args(TimeframeName)) == set(periods.TIMEFRAMES)
    assert PeriodQuery().period == periods.DEFAULT == periods.TIMEFRAMES[TimeframeQuery().timeframe]


def test_figures_of_what_nobody_manages_are_forbidden(store: Store) -> None:
    actor = store.write(partial(catalog, NOW)).result().manager
    artist = store.write(lambda: int(Artist.create(name="Nobody's", created_at=NOW).id)).result()
    track = store.write(lambda: int(Track.create(name="Uncredited", duration=1, created_at=NOW).id)).result()
    for find, number in ((insight_figures.artist_of, artist), (insight_figures.track_of, track)):
        with pytest.raises(Forbidden, match="another account's"):
            store.read(partial(find, number, actor=actor)).result()
