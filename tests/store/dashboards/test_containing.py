"""Pages say how many playlists, collections and likes contain a track, an album or an artist."""

from functools import partial

from musicsvc.store.dashboards import dashboards
from musicsvc.store.dashboards.dashboards import Containing
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist
from musicsvc.store.playlists import collections, playlists
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.conftest import NOW
from tests.support import databases
from tests.support.bounds import Bounds
from tests.support.listening_world import Catalog, catalog


@databases.prefilling
def prefilled(store: Store) -> Catalog:
    """Tracks 0 and 1, which are on album 0, and track 3 in lists of their manager; the first list has one twice."""

    def fill() -> Catalog:
        made = catalog(NOW)
        first, second, _, other, _ = made.tracks
        for name, public, tracks in (
            ("Rags", True, [first, second, first]),
            ("Mine", False, [first]),
            ("More rags", True, [other, first]),
            ("Waltzes", True, [other]),
        ):
            values = {"name": name, "public": public, "collaborative": False}
            row = playlists.create(values, now=NOW, actor=made.manager)
            playlists.append(row.id, tracks, actor=None, now=NOW)
        collections.create("Kept", None, [first, second], now=NOW, actor=made.manager)
        collections.create("Also kept", None, [first, other], now=NOW, actor=made.manager)
        made.give([(first, NOW), (first, NOW), (second, NOW), (other, NOW)], [])
        return made

    return store.write(fill).result()


def load(store: Store, kind: int, each: int) -> Containing:
    return store.read(partial(dashboards.containing, Subject(kind, each))).result()


def test_lists_are_counted_once_and_only_public_ones_of_a_track_are_named(store: Store, made: Catalog) -> None:
    first, second, _, other, silent = made.tracks
    assert load(store, TRACK, first) == Containing(3, 2, 2, 2, ("More rags", "Rags"))
    assert load(store, TRACK, second) == Containing(1, 1, 1, 1, ("Rags",))
    assert load(store, TRACK, other) == Containing(2, 2, 1, 1, ("Waltzes", "More rags"))
    assert load(store, TRACK, silent) == Containing(0, 0, 0, 0)
    assert load(store, ALBUM, made.albums[0]) == Containing(3, 2, 2, 3)
    assert load(store, ARTIST, made.artists[1]) == Containing(3, 3, 2, 2)  # of tracks 1, 2 and 3
    assert load(store, ARTIST, store.read(Artist.select().count).result() + 1) == Containing(0, 0, 0, 0)


def test_of_many_public_playlists_the_newest_are_named(store: Store, made: Catalog, bounds: Bounds) -> None:
    bounds(most_names=1)
    assert load(store, TRACK, made.tracks[0]) == Containing(3, 2, 2, 2, ("More rags",))
