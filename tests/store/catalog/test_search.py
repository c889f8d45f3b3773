"""Search in the catalog: order of matches, identifiers, and the indexes after every kind of change."""

import random
import time
from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from typing import Any

import pytest
from peewee import Model

from musicsvc.store.accounts import users
from musicsvc.store.catalog import search
from musicsvc.store.engine import bulk, name_index
from musicsvc.store.engine.name_keys import folded_key
from musicsvc.store.engine.sql import batches, fetch, run
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Playlist, Track, User
from musicsvc.store.playlists import playlists
from musicsvc.store.schema import schema
from tests.support.rolled_back import UndoError

WORDS = ["love", "Löve", "LOVER", "glove", "clover", "100%", "o'love", "blue", "Rüby", "ruby_x", "a", "b", "ab", "zoë"]
TEXTS = ("love", "LÖV", "ov", "o", "a b", "100%", "%", "_x", "ruby", "y_", "zoe ", "e l", "none of these")
ISRC = "GBAYE6800011"


def ids(found: Any) -> list[int]:
    return [row.id for row in getattr(found, "rows", found)]


def _found(find: Callable[[str], Any], text: str) -> list[int]:
    return ids(find(text))


def expected(rows: dict[int, str], text: str) -> list[int]:
    """Return the ids of the best ten matches, computed without an index."""
    wanted = folded_key(text)
    ranked = []
    for row_id, name in rows.items():
        folded = folded_key(name)
        places = [at for at in range(len(folded)) if folded.startswith(wanted, at)]
        words = [at for at in places if folded[at].isalnum() and (at == 0 or not folded[at - 1].isalnum())]
        if places and (len(wanted) > 2 or words or places[0] == 0):
            ranked.append((0 if places[0] == 0 else 1 if words else 2, len(folded), row_id))
    return [row_id for *_, row_id in sorted(ranked)][:10]


def test_every_change_is_found_by_the_next_search(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    finders: dict[Any, Callable[[str], Any]] = {
        Artist: search.find_artists, Album: search.find_albums, Track: search.find_tracks
    }  # fmt: skip
    counts: dict[Any, int] = {Artist: 23, Album: 31, Track: 47}

    def name() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randrange(1, 4)))

    def change(table: type[Model]) -> None:
        columns: Any = table
        defaults = {"duration": 1} if table is Track else {}
        names = ("name", *defaults, "created_at")
        bulk.insert(table, names, [(name(), *defaults.values(), 1) for _ in range(counts[table])])
        known = [row_id for (row_id,) in table.select(columns.id).tuples().iterator()]
        for each in chance.sample(known, 5):
            table.update(name=name()).where(columns.id == each).execute()
            table.update(name=name()).where(columns.id.in_([each, known[0]])).execute()
        table.delete().where(columns.id.in_(chance.sample(known, 7))).execute()
        table.create(name=name(), **defaults, created_at=1)

    def check(table: type[Model]) -> None:
        columns: Any = table
        rows = dict(table.select(columns.id, columns.name).tuples().iterator())
        assert {text: ids(finders[table](text)) for text in TEXTS} == {text: expected(rows, text) for text in TEXTS}
        assert any(len(expected(rows, text)) == search.MOST for text in TEXTS)

    for _ in range(2):
        for table in counts:
            store.write(partial(change, table)).result()
            store.read(partial(check, table)).result()
    assert store.read(name_index.differences).result() == []
    for table in ("album_search", "track_search"):
        store.write(partial(run, f"DELETE FROM {table}")).result()
    found = store.read(schema.problems).result()
    assert found == [
        "search: the index of the names of albums has 0 entries, not 50",
        "search: the index of the names of tracks has 0 entries, not 82",
    ]
    store.write(name_index.rebuild).result()
    for table in counts:
        store.read(partial(check, table)).result()


def test_only_public_playlists_are_found_and_only_while_they_are_public(store: Store) -> None:
    def found(text: str = "rainy") -> list[int]:
        return [row.id for row in store.read(lambda: playlists.find_public(text, 10)).result()]

    owner = store.write(lambda: users.create("ann@label.test", now=1)).result()

    def add(name: str, *, public: bool) -> int:
        return int(Playlist.create(owner=owner.id, name=name, public=public, created_at=1).id)

    rainy = store.write(partial(add, "Rainy day", public=True)).result()
    secret = store.write(partial(add, "Rainy night", public=False)).result()
    assert found() == [rainy]
    store.write(lambda: playlists.replace(secret, {"public": True})).result()
    assert found() == [rainy, secret]
    store.write(lambda: playlists.replace(rainy, {"public": False}) and None).result()
    assert found() == [secret]
    store.write(lambda: playlists.replace(secret, {"name": "Sunny"}) and None).result()
    assert (found(), found("sun")) == ([], [secret])
    store.write(lambda: User.delete().where(User.id == owner.id).execute()).result()
    assert found("sun") == []
    assert store.read(name_index.differences).result() == []


def test_a_track_is_found_by_its_isrc_and_an_album_by_its_upc(store: Store) -> None:
    def add() -> None:
        for isrc in (ISRC, None, ISRC, "GBAYE6800012"):
            Track.create(name="Maple Leaf Rag" if isrc else ISRC, duration=1, isrc=isrc, created_at=1)
        for upc in ("036000291452", "4006381333931", None):
            Album.create(name="Rags" if upc else "036000291452", upc=upc, created_at=1)

    store.write(add).result()
    for text in (ISRC, "GB-AYE-68-00011", "gbaye6800011"):
        assert store.read(partial(_found, search.find_tracks, text)).result() == [3, 1] + [2] * ("-" not in text)
    for text, there in (("0 36000 29145 2", [1]), ("0036000291452", [1]), ("036000291452", [1, 3])):
        assert store.read(partial(_found, search.find_albums, text)).result() == there
    assert store.read(lambda: ids(search.find_albums("4006381333931"))).result() == [2]
    assert store.read(lambda: ids(search.find_albums("006381333931"))).result() == []


def test_units_that_write_at_the_same_time_leave_exact_indexes(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    store.write(lambda: bulk.insert(Artist, ("name", "created_at"), [("Name", 1)] * 9)).result()

    def change(own: random.Random) -> None:
        for each in sorted(own.sample(range(1, 10), 2)):
            Artist.update(name=own.choice(WORDS)).where(Artist.id == each).execute()
        Artist.create(name=own.choice(WORDS), created_at=1)
        if own.random() < 0.3:
            raise UndoError("no")

    changes = [store.write(partial(change, random.Random(chance.random()))) for _ in range(80)]
    wait(changes)
    assert {type(each.exception()) for each in changes} == {type(None), UndoError}
    assert store.read(name_index.differences).result() == []
    rows = store.read(lambda: dict(Artist.select(Artist.id, Artist.name).tuples().iterator())).result()
    assert store.read(lambda: ids(search.find_artists("lov"))).result() == expected(rows, "lov")


@pytest.mark.only_on("sqlite")
def test_a_text_of_many_words_costs_nothing_for_names_that_are_shorter(store: Store) -> None:
    """Each word of a phrase costs time for each name in which all its trigrams are."""
    text = " ".join("a" * 50)

    def add() -> None:
        rows = [{"name": " ".join("a" * 40), "duration": 1, "created_at": 0} for _ in range(3000)]
        for some in batches(rows, 500):
            Track.insert_many(some).execute()

    def seconds(find: Callable[[], Any]) -> float:
        began = time.thread_time()
        assert not any(find() for _ in range(5))
        return time.thread_time() - began

    def compare() -> list[float]:
        phrase = name_index._phrase(name_index._marked(text))
        among_all = name_index.PHRASES.format(table=name_index.TRACKS.table, also="")
        return [
            seconds(lambda: fetch(among_all, phrase, 0, 10)),
            seconds(lambda: name_index.TRACKS.find(text, 10)),
            seconds(lambda: name_index.TRACKS.newest(text, 10, 0)[1]),
        ]

    store.write(add).result()
    among_all, *bounded = store.read(compare).result()
    assert max(bounded) < among_all / 3
