"""The search finds what an account manages, by name."""

import random
from functools import partial

from musicsvc.clock import DAY
from musicsvc.store.dashboards import catalog_search
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Track, TrackArtist
from musicsvc.store.plays import periods
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.conftest import NOW
from tests.support import databases
from tests.support.bounds import Bounds
from tests.support.listening_world import Catalog, catalog

WINDOW = periods.window("7-days", NOW)


def find(store: Store, text: str, made: Catalog, page: int = 1) -> list[catalog_search.Result]:
    return store.read(partial(catalog_search.find, text, made.manager.user_id, WINDOW, page)).result().results


@databases.prefilling
def prefilled(store: Store) -> Catalog:
    def fill() -> Catalog:
        catalog(NOW)  # another account with the same names
        made = catalog(NOW)
        Artist.update(name="Café del Mar").where(Artist.id == made.artists[0]).execute()
        Album.update(name="100% café").where(Album.id == made.albums[1]).execute()
        Track.update(name="Caffè").where(Track.id == made.tracks[1]).execute()
        return made

    return store.write(fill).result()


def test_names_are_found_without_case_and_accents_within_the_account(store: Store, made: Catalog) -> None:
    def found(text: str) -> list[tuple[int, int, str]]:
        results = find(store, text, made)
        return [(*each.subject, each.name) for each in results]

    assert found("CAFE") == [(ARTIST, made.artists[0], "Café del Mar"), (ALBUM, made.albums[1], "100% café")]
    assert found("caf") == [*found("CAFE"), (TRACK, made.tracks[1], "Caffè")]
    assert found("k 3") == [(TRACK, made.tracks[3], "Track 3")]
    assert found("0% ca") == found("10") == [(ALBUM, made.albums[1], "100% café")]
    assert found("0%") == found("%0") == found(" ") == found("\u0301") == []  # two characters: of the first of a word


def test_names_that_begin_with_the_text_come_first_then_shorter_ones(store: Store, made: Catalog) -> None:
    def rename() -> None:
        for each, name in zip(made.tracks, ("a rain", "rainfall", "The rain", "rainy", "Rainbow"), strict=True):
            Track.update(name=name).where(Track.id == each).execute()

    store.write(rename).result()
    results = find(store, "rain", made)

    assert [each.name for each in results] == ["rainy", "Rainbow", "rainfall", "a rain", "The rain"]


def test_an_isrc_or_upc_finds_its_track_or_album_first(store: Store, made: Catalog) -> None:
    def identify() -> None:
        Track.update(isrc="GBAYE6800011").where(Track.id == made.tracks[4]).execute()
        Track.update(name="GBAYE6800011").where(Track.id == made.tracks[2]).execute()
        Album.update(upc="036000291452").where(Album.id == made.albums[0]).execute()

    store.write(identify).result()

    def found(text: str) -> list[int]:
        return [each.subject.id for each in find(store, text, made)]

    assert found("gbaye6800011") == [made.tracks[4], made.tracks[2]]
    assert found(" gb-aye-68-00011") == [made.tracks[4]]
    assert found("036000291452") == [made.albums[0]]
    assert found("036000291") == []


def test_results_have_their_artists_and_plays_and_page_on(store: Store, made: Catalog) -> None:
    def fill() -> list[int]:
        made.add_plays((made.tracks[3], NOW - day * DAY, "ann") for day in (0, 1, 20))
        tracks = [Track.create(name="Love Me", duration=1, created_at=NOW).id for _ in range(45)]
        for each in tracks:
            TrackArtist.create(track=each, artist=made.artists[1], position=0)
        return tracks

    tracks = store.write(fill).result()
    (found,) = find(store, "track 3", made)
    assert found == (Subject(TRACK, made.tracks[3]), "Track 3", ("Artist 2", "Café del Mar", "Artist 1"), 2, 3)

    pages = [
        store.read(partial(catalog_search.find, "love me", made.manager.user_id, WINDOW, page)).result()
        for page in (1, 2, 3, 4)
    ]
    assert [[each.subject.id for each in page.results] for page in pages] == [
        tracks[:20],
        tracks[20:40],
        tracks[40:],
        [],
    ]
    assert [page.more for page in pages] == [True, True, False, False]
    assert {each.artists for page in pages for each in page.results} == {("Artist 1",)}


def test_names_compared_one_by_one_and_the_index_find_the_same_in_the_same_order(
    store: Store, made: Catalog, bounds: Bounds
) -> None:
    chance = random.Random(7)
    words = ("love", "me", "Lové-me", "(me)", "glove", "Melo", "lo ve", "m", "ÀMÉ", "x", "100%")

    def rename() -> None:
        for manager in (made, None):
            for _ in range(40):
                name = " ".join(chance.choices(words, k=chance.randrange(1, 5)))
                track = Track.create(name=name, duration=1, created_at=NOW).id
                TrackArtist.create(track=track, artist=made.artists[1] if manager else 1, position=0)

    store.write(rename).result()
    texts = ("love", "me", "m", "lo", "ve m", "-me", "me (", "lovem", "e lo", "élo", "love-m", "0%", "%0", "\u0301")
    for text in texts:
        found = []
        for few in (1000, 0):
            bounds(few_names=few)
            found.append([each.subject for page in range(1, 4) for each in find(store, text, made, page)])
        assert found[0] == found[1], text
