"""Of an album that others have tracks on too, the plays of one artist's tracks, in rankings, reports and files."""

import random
from functools import partial
from typing import Any

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.server.shapes import exports as shapes
from musicsvc.server.shapes import insights
from musicsvc.store.catalog import tracks as catalog_tracks
from musicsvc.store.editing import deletions
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import export_rows, overview, rankings
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Album, AlbumArtist, Track, TrackArtist
from musicsvc.store.plays.periods import window
from tests.support.listening_world import Catalog, catalog
from tests.support.play_counts import roll_up

ALBUMS = 23
PERIODS = ("7-days", "30-days", "1-year")


def fill(clock: MovableClock, seed: int) -> Catalog:
    """Create albums of the first artist: on some all tracks are its own, on others few or none, or it was deleted."""
    chance, made = random.Random(seed), catalog(clock.now())
    past, (first, second, third) = made.past, made.artists
    gone = []
    for number in range(ALBUMS):
        album = Album.create(name=f"Mixed {number}", created_at=1).id
        AlbumArtist.create(album=album, artist=first, position=0)
        past.album_names[album] = f"Mixed {number}"
        past.albums_by_artist[first].append(album)
        for place in range(chance.randrange(1, 5)):
            track = Track.create(name=f"{number}.{place}", duration=1, album=album, created_at=1).id
            credited = [[first], [first, second], [second], [third]][chance.randrange(4 if number % 3 else 2)]
            for position, artist in enumerate(credited):
                TrackArtist.create(track=track, artist=artist, position=position)
                past.by_artist[artist].append(track)
            past.on_album.setdefault(album, []).append(track)
            past.names[track] = f"{number}.{place}"
            made.tracks.append(track)
            if chance.random() < 0.2:
                gone.append(track)
    now = clock.now()
    made.add_plays(
        (chance.choice(made.tracks), now - min(int(chance.expovariate(1 / 60)), 500) * DAY, f"l{chance.randrange(40)}")
        for _ in range(1500)
    )
    for track in gone:
        deletions.delete(catalog_tracks.get(track), now=now, account=None, actor="cli")
        del past.names[track]
    return made


@pytest.fixture(params=[1, 2])
def made(request: pytest.FixtureRequest, store: Store, clock: MovableClock) -> Catalog:
    found: Catalog = store.write(partial(fill, clock, request.param)).result()
    roll_up(store)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("period", PERIODS)
def test_top_albums_are_ordered_by_the_plays_of_the_artists_own_tracks(
    store: Store, clock: MovableClock, made: Catalog, period: str
) -> None:
    days, now = window(period, clock.now()), clock.now()
    mixed = 0
    for artist in made.artists:
        found = store.read(partial(rankings.albums_of_artist, artist, days)).result()
        rows = [insights.ranked(row) for row in found]
        assert rows == made.past.artist(artist, period, now, 0)["top_albums"]
        mixed += sum(0 < row["plays"]["of_artist"]["period"] < row["plays"]["period"] for row in rows)
    assert mixed > 1


@pytest.mark.slow
@pytest.mark.parametrize("period", PERIODS)
def test_a_report_and_an_export_of_one_artist_count_the_same(
    store: Store, clock: MovableClock, made: Catalog, period: str
) -> None:
    days, now, artist = window(period, clock.now()), clock.now(), made.artists[0]
    scope = Scope(artist=artist)
    past = made.past
    rows = past.albums(past.albums_by_artist[artist], past.by_artist[artist], period, now)
    expected = {row["id"]: row for row in rows}

    report = store.read(partial(overview.build_for_print, scope, days, now)).result()
    shown = shapes.report_file(report, now, "pdf")["top_albums"]
    for row in shown:
        assert {name: row[name] for name in ("id", "name", "plays", "listeners")} == expected[row["id"]]
    top = past.artist(artist, period, now, 0)["top_albums"][:5]
    assert [row["id"] for row in shown] == [row["id"] for row in top if row["plays"]["of_artist"]["period"]]

    columns = export_rows.columns("albums", scope)
    assert columns[-2:] == ("first_play", "plays_of_artist_period")
    cells = store.read(partial(all_cells, scope, days)).result()
    found = [dict(zip(columns, row, strict=True)) for row in cells]
    assert len(found) == len(expected) > ALBUMS
    for row in found:
        plays = expected[row["album_id"]]["plays"]
        assert (row["plays_period"], row["plays_of_artist_period"]) == (plays["period"], plays["of_artist"]["period"])
    assert export_rows.columns("albums", Scope(manager=made.manager.user_id)) == export_rows.COLUMNS["albums"]


def all_cells(scope: Scope, days: Any) -> list[Any]:
    with export_rows.cells("albums", scope, days) as rows:
        return list(rows)
