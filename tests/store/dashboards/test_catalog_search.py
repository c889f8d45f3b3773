"""The search finds what an account manages, by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from musicsvc.store.dashboards import catalog_search
from musicsvc.store.models import Album, Artist, Track
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from tests.support.listening_world import Catalog, catalog

if TYPE_CHECKING:
    from musicsvc.clock import MovableClock
    from musicsvc.store.engine.store import Store


@pytest.fixture
def made(store: Store, clock: MovableClock) -> Catalog:
    def fill() -> Catalog:
        catalog(clock.now())  # another account with the same names
        made = catalog(clock.now())
        Artist.update(name="Café del Mar").where(Artist.id == made.artists[0]).execute()
        Album.update(name="100% café").where(Album.id == made.albums[1]).execute()
        Track.update(name="Caffè").where(Track.id == made.tracks[1]).execute()
        return made

    return store.write(fill).result()


def test_names_are_found_without_case_and_accents_within_the_account(store: Store, made: Catalog) -> None:
    def found(text: str) -> list[tuple[int, int, str]]:
        results = store.read(partial(catalog_search.find, text, made.manager.user_id)).result()
        return [(*each.subject, each.name) for each in results]

    assert found("CAFE") == [(ARTIST, made.artists[0], "Café del Mar"), (ALBUM, made.albums[1], "100% café")]
    assert found("caf") == [*found("CAFE"), (TRACK, made.tracks[1], "Caffè")]
    assert found("k 3") == [(TRACK, made.tracks[3], "Track 3")]
    assert found("0%") == [(ALBUM, made.albums[1], "100% café")]
    assert found("%0") == found(" ") == found("\u0301") == []


def test_names_that_begin_with_the_text_come_first_then_shorter_ones(store: Store, made: Catalog) -> None:
    def rename() -> None:
        for each, name in zip(made.tracks, ("a rain", "rainfall", "The rain", "rainy", "Rainbow"), strict=True):
            Track.update(name=name).where(Track.id == each).execute()

    store.write(rename).result()
    results = store.read(partial(catalog_search.find, "rain", made.manager.user_id)).result()

    assert [each.name for each in results] == ["rainy", "Rainbow", "rainfall", "a rain", "The rain"]


def test_an_isrc_or_upc_finds_its_track_or_album_first(store: Store, made: Catalog) -> None:
    def identify() -> None:
        Track.update(isrc="GBAYE6800011").where(Track.id == made.tracks[4]).execute()
        Track.update(name="GBAYE6800011").where(Track.id == made.tracks[2]).execute()
        Album.update(upc="036000291452").where(Album.id == made.albums[0]).execute()

    store.write(identify).result()

    def found(text: str) -> list[int]:
        return [
            each.subject.id for each in store.read(partial(catalog_search.find, text, made.manager.user_id)).result()
        ]

    assert found("gbaye6800011") == [made.tracks[4], made.tracks[2]]
    assert found(" gb-aye-68-00011") == [made.tracks[4]]
    assert found("036000291452") == [made.albums[0]]
    assert found("036000291") == []
