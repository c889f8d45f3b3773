"""The artists of listens are found by whole names: in one step for a batch, however many names are like them."""

from functools import partial

from musicsvc.store.engine.name_index import ARTISTS
from musicsvc.store.engine.sql import is_sqlite
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.rows import MOST_ARTISTS
from musicsvc.store.listens import matching, resolving
from musicsvc.store.models import Artist, Track, TrackArtist
from tests.conftest import NOW
from tests.store.listens.test_resolving import NAMES, hear, heard, make, played, settle
from tests.support import reported_plays
from tests.support.merges import merge
from tests.support.query_count import queries

LONG = "The Long Named Orchestra of a Town that has a Long Name of its Own, and "


def create(*names: str) -> list[int]:
    return [int(Artist.create(name=name, created_at=NOW).id) for name in names]


def equal(store: Store, *names: str) -> set[int]:
    return store.read(partial(ARTISTS.equal, names)).result()


def test_an_index_finds_whole_names_without_case_and_accents(store: Store) -> None:
    names = ("Ann", "ANN", "Änn", "Anne", "Joann", "An", "A", "!!!", "a_b", "a b", "混合", f"{LONG}one", f"{LONG}two")
    ids = dict(zip(names, store.write(partial(create, *names)).result(), strict=True))
    assert equal(store, "ann") == {ids["Ann"], ids["ANN"], ids["Änn"]}
    assert equal(store, "anne", "a", "A_B", "混合", "!!!", "") == {
        ids[name] for name in ("Anne", "A", "a_b", "混合", "!!!")
    }
    assert equal(store, f"{LONG}ONE") in ({ids[f"{LONG}one"]}, {ids[f"{LONG}one"], ids[f"{LONG}two"]})
    assert equal(store, LONG, "nn", "%", "") == equal(store) == set()


def test_a_track_is_found_behind_many_artists_of_its_artists_name(store: Store) -> None:
    others = [f"A{sign}n" for sign in "nNñÑ" for _ in range(30)]
    store.write(partial(create, *others)).result()
    track = store.write(partial(make, "Morning", "ann")).result()
    assert store.read(partial(matching.find, [heard(artist="Ann"), heard(artist="Añn")])).result() == [track, None]


def test_the_other_artists_of_a_listen_decide_between_tracks(store: Store) -> None:
    def together(other: int) -> int:
        track = make("Air", "Ann")
        TrackArtist.create(track=track, artist=other, position=1)
        return track

    cleo, ben, former = store.write(partial(create, "Cleo", "Ben", "Benjamin")).result()
    with_cleo, with_ben = [store.write(partial(together, each)).result() for each in (cleo, ben)]
    names = ("Ann; Cleo", "ann; ben", "Ann; Benjamin", "Ben; Ann", "Cleo; Ben")
    found = partial(matching.find, [heard(artist=name, title="Air") for name in names])
    assert store.read(found).result() == [with_cleo, with_ben, with_cleo, with_ben, with_cleo]
    merge(store, "artist", former, ben)
    assert store.read(found).result() == [with_cleo, with_ben, with_ben, with_ben, with_cleo]
    many = ";".join(["Ann", "Ben", *map(str, range(MOST_ARTISTS))])
    assert heard(artist=many).artists == ("Ann", "Ben", *map(str, range(MOST_ARTISTS - 2)))
    assert store.read(partial(matching.find, [heard(artist=many, title="Air")])).result() == [with_cleo]


def test_a_batch_takes_few_statements_whatever_it_names(store: Store) -> None:
    listens = [heard(artist=f"Artist {number}; Guest {number}", title="Air") for number in range(200)]
    store.write(partial(make, "Air", "Artist 7")).result()
    store.write(lambda: Track.create(name="Air", duration=1, created_at=NOW)).result()
    with queries(store) as statements:
        assert sum(each is not None for each in store.read(partial(matching.find, listens)).result()) == 1
    names = len(listens) if store.read(is_sqlite).result() else 1  # SQLite reads its index name by name
    assert len(statements) <= names + 12


def test_a_large_import_is_looked_at_in_few_steps(store: Store) -> None:
    ann = store.write(partial(reported_plays.account, reports_plays=False)).result()
    hear(store, ann, heard(title="Last"))
    settle(store)
    store.write(lambda: (create(*(f"Artist {number}" for number in range(998))), make("Last", NAMES[0]))).result()
    steps = 0
    while store.read(resolving.is_due).result():
        steps += store.write(partial(resolving.advance, NOW)).result()
    assert (steps, len(played(store))) == (1, 1)
