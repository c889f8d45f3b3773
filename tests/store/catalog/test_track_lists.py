"""The list of all tracks and its filters, also where they are long."""

import random
from functools import partial

from musicsvc.store.catalog import genres, track_lists
from musicsvc.store.catalog.track_lists import TrackFilters
from musicsvc.store.engine import bulk, list_blocks
from musicsvc.store.engine.list_blocks import LONGEST
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Track, TrackArtist, TrackGenre
from tests.support.page_checks import check_pages
from tests.support.query_count import queries

MANY = 9_001


def test_the_newest_tracks_of_an_artist_and_of_a_genre_are_found_on_deep_pages(store: Store, seed: int) -> None:
    chance = random.Random(seed)

    def add() -> None:
        Artist.create(name="Ann", created_at=1)
        made = bulk.ids(Track, MANY)
        bulk.insert(Track, ("id", "name", "duration", "created_at"), [(each, "Track", 1, 1) for each in made])
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, 1, 0) for each in made[::2]])
        ids = genres.ensure(["Rock", "Jazz"])
        bulk.insert(TrackGenre, ("track", "genre"), [(each, ids["jazz"]) for each in chance.sample(made, 2 * LONGEST)])
        bulk.insert(TrackGenre, ("track", "genre"), [(each, ids["rock"]) for each in made[::3]])
        Track.delete().where(Track.id.in_(chance.sample(made, 700))).execute()

    def check() -> None:
        assert list_blocks.differences() == []
        linked = "SELECT t.track_id FROM track_{0} t WHERE t.{0}_id = 1 {1} ORDER BY 1 DESC"
        both = linked.format("artist", "AND EXISTS (SELECT 1 FROM track_genre g WHERE g.track_id = t.track_id AND {})")
        for statement, filters in (
            ("SELECT id FROM track ORDER BY id DESC", TrackFilters()),
            (linked.format("artist", ""), TrackFilters(artist_id=1)),
            (linked.format("genre", ""), TrackFilters(genre="jazz")),
            (both.format("genre_id = 2"), TrackFilters(artist_id=1, genre="rock")),
        ):
            check_pages([row[0] for row in fetch(statement)], partial(track_lists.find, filters), chance)

    store.write(add).result()
    store.read(check).result()
    counted = [TrackFilters(), TrackFilters(artist_id=1), TrackFilters(genre="jazz")]
    for filters in (*counted, TrackFilters(artist_id=1, genre="rock"), TrackFilters(isrc="x"), TrackFilters(name="k")):
        with queries(store) as statements:
            store.read(partial(track_lists.find, filters, Page())).result()
        assert any("list_block" in each.sql for each in statements) == (filters in counted), filters
    blocks = "SELECT count(*) FROM list_block WHERE list = ? AND owner = 1"
    for each in (list_blocks.NEWEST_ARTIST_TRACKS, list_blocks.GENRE_TRACKS):
        assert store.read(partial(fetch, blocks, each.number)).result()[0][0] > 1
