"""Twins are proposed among what an account manages."""

from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.editing import twins
from musicsvc.store.editing.merging import Noun
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Track,
    TrackArtist,
)
from tests.conftest import NOW
from tests.support.merges import FIRST_PAGE


def test_twins_are_pairs_of_alike_names_and_codes_of_an_account(store: Store, fans: list[Identity]) -> None:
    def make() -> None:
        for number, name in enumerate(("Björk", "bjork!", "Björk", "!!!", "?"), 3):
            Artist.create(name=name, manager=fans[number == 5].user_id, created_at=NOW)
        for number, (name, isrc) in enumerate(
            (
                ("Jóga", None),
                ("Joga", "GBAYE6800011"),
                ("JOGA.", "GBAYE6800012"),
                ("Other", "GBAYE6800012"),
                ("Jóga", None),
            )
        ):
            track = Track.create(name=name, duration=1, isrc=isrc, created_at=NOW).id
            TrackArtist.create(track=track, artist=(3, 4, 3, 4, 5)[number], position=0)
        TrackArtist.create(track=4, artist=4, position=1)  # no twin of itself, though its artists are twins
        for upc, name in (("036000291452", "Homogenic"), ("0036000291452", "Debut")):
            AlbumArtist.create(album=Album.create(name=name, upc=upc, created_at=NOW).id, artist=3, position=0)

    store.write(make).result()

    def pairs(noun: Noun, page: Page = FIRST_PAGE) -> list[tuple[int, int, tuple[str, ...]]]:
        found = twins.list(noun, twins.find(noun, fans[0].user_id), page)
        assert found.total == len(found.rows) or page.size == 1
        return [(row.from_id, row.into_id, row.reasons) for row in found.rows]

    assert store.read(lambda: pairs("artist")).result() == [(4, 3, ("name",))]
    assert store.read(lambda: pairs("album")).result() == [(3, 2, ("upc",))]
    assert store.read(lambda: pairs("track")).result() == [(5, 4, ("name",)), (6, 4, ("name",)), (7, 6, ("isrc",))]
    assert store.read(lambda: pairs("track", Page(2, 1))).result() == [(6, 4, ("name",))]


def test_rows_with_one_id_of_a_service_are_twins_whatever_their_names_and_codes(
    store: Store, fans: list[Identity]
) -> None:
    def make() -> None:
        artist = Artist.create(name="Ann", manager=fans[0].user_id, created_at=NOW).id
        for name, isrc, external_id in (
            ("Rag", "GBAYE6800011", "spotify:track:x"),
            ("Waltz", "GBAYE6800012", "x"),
            ("Gigue", None, "https://open.spotify.com/intl-de/track/x"),
            ("Air", None, "y"),
        ):
            track = Track.create(
                name=name, duration=1, isrc=isrc, external_id=external_id, imported_for=1, created_at=NOW
            )
            TrackArtist.create(track=track.id, artist=artist, position=0)
        for name, external_id in (("One", "spotify:album:x"), ("Two", "https://open.spotify.com/album/x?si=1")):
            album = Album.create(name=name, external_id=external_id, imported_for=1, created_at=NOW).id
            AlbumArtist.create(album=album, artist=artist, position=0)

    store.write(make).result()

    def pairs(noun: Noun) -> list[tuple[str, str, tuple[str, ...]]]:
        found = twins.list(noun, twins.find(noun, fans[0].user_id), FIRST_PAGE)
        return [(row.from_name, row.into_name, row.reasons) for row in found.rows]

    assert store.read(lambda: pairs("track")).result() == [("Waltz", "Rag", ("id",)), ("Gigue", "Rag", ("id",))]
    assert store.read(lambda: pairs("album")).result() == [("Two", "One", ("id",))]
