"""The overview of a scope: the numbers of tracks, albums and artists, and their order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from musicsvc.clock import DAY
from musicsvc.store.insights import overview
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays.periods import window
from tests.support.listening_world import catalog

if TYPE_CHECKING:
    from musicsvc.clock import MovableClock
    from musicsvc.store.engine.store import Store


def test_the_ten_tracks_and_the_five_albums_and_artists_that_were_played_most(
    store: Store, clock: MovableClock
) -> None:
    now = clock.now()

    def fill() -> list[int]:
        made = [catalog(now) for _ in range(3)]
        tracks = [track for each in made for track in each.tracks]
        made[0].add_plays((track, now - DAY, str(who)) for plays, track in enumerate(tracks, 1) for who in range(plays))
        return tracks

    tracks = store.write(fill).result()
    days = window("7-days", now)
    found = store.read(lambda: overview.build(Scope(), days, albums_and_artists=True)).result()
    assert [(row.id, row.figures.plays) for row in found.top] == [(tracks[each], each + 1) for each in range(14, 4, -1)]
    for rows in (found.top_albums, found.top_artists):
        plays = [row.figures.plays for row in rows]
        assert (len(plays), plays) == (5, sorted(plays, reverse=True))


def test_an_overview_is_named_after_its_artist_or_its_account(store: Store, clock: MovableClock) -> None:
    made = store.write(lambda: catalog(clock.now())).result()
    days = window("7-days", clock.now())
    scopes = (Scope(), Scope(manager=made.manager.user_id), Scope(artist=made.artists[1]))
    names = [store.read(partial(overview.build, scope, days)).result().name for scope in scopes]
    assert names == [None, "manager0", "Artist 1"]
