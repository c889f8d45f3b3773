"""Totals and pages of lists that are long enough to be counted in blocks, whatever is written in between."""

import random
from collections.abc import Sequence
from concurrent.futures import wait
from contextlib import suppress
from functools import partial

import pytest

from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import albums, artists, genres, tracks
from musicsvc.store.engagement import comments
from musicsvc.store.engine import bulk, list_blocks
from musicsvc.store.engine.list_blocks import LONGEST
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.sql import fetch, run, savepoint
from musicsvc.store.engine.store import Store
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Comment,
    Genre,
    Playlist,
    PlaylistInvite,
    Track,
    TrackArtist,
)
from musicsvc.store.playlists import playlists
from musicsvc.store.plays import ingest, verify
from musicsvc.store.schema import schema
from tests.paging import world as worlds
from tests.support.page_checks import SIZES, check_pages
from tests.support.rolled_back import UndoError

MANY = 9_001
PLAYED = """
    SELECT l.track_id FROM track_artist l LEFT JOIN track_plays p ON p.track_id = l.track_id WHERE l.artist_id = ?
    ORDER BY coalesce(p.plays, 0) DESC, l.track_id DESC
"""


@pytest.fixture
def owner(store: Store) -> Identity:
    """An account, which has an artist with a few albums, and two tracks."""

    def add() -> Identity:
        _, actor = worlds.add_account(worlds.World("", 1), "ann")
        artists.create("Ann", None, None, now=1, actor=actor)
        for each in range(2):
            Track.create(name=f"Track {each}", duration=1, created_at=1)
        return actor

    return store.write(add).result()


def add_comments(owner: Identity, track: int, places: Sequence[int]) -> None:
    names = ("track", "user", "content", "position", "depth", "place", "created_at")
    bulk.insert(Comment, names, [(track, owner.user_id, "hm", 0, 0, place, 1) for place in places])


def add_playlists(owner: Identity, count: int) -> None:
    bulk.insert(Playlist, ("owner", "name", "created_at"), [(owner.user_id, "mix", 1)] * count)


def blocks(owner: int, number: int) -> list[int]:
    """The sizes of a list's blocks."""
    select = "SELECT sum(size) FROM list_block WHERE list = ? AND owner = ? GROUP BY first_key, first_id"
    return [int(size) for (size,) in fetch(select, number, owner)]


def test_pages_equal_the_whole_list_while_rows_come_and_go(store: Store, owner: Identity, seed: int) -> None:
    chance = random.Random(seed)

    def change() -> None:
        first = sorted(chance.sample(range(1, 10**9), MANY))
        add_comments(owner, 1, first[::2])
        add_comments(owner, 1, first[1::2])
        add_comments(owner, 2, range(1, 40))
        add_playlists(owner, LONGEST + 100)
        for _ in range(5):
            for each in chance.sample(range(1, 10**9), 100):
                add_comments(owner, 1, [each])
            some = chance.sample([row[0] for row in fetch("SELECT id FROM comment")], 600)
            Comment.delete().where(Comment.id.in_(some)).execute()
            Playlist.delete().where(Playlist.id.between(*sorted(chance.sample(range(1, LONGEST), 2)))).execute()
            add_playlists(owner, 1_111)
            check()
        comments._make_room(1, 10**8)
        check()
        comments._make_room(1, 0)
        check()

    def check() -> None:
        assert list_blocks.differences() == []
        for track in (1, 2):
            rows = fetch("SELECT id FROM comment WHERE track_id = ? ORDER BY place, id", track)
            check_pages([row[0] for row in rows], partial(comments.list_by_track, track), chance)
        rows = fetch("SELECT id FROM playlist WHERE owner_id = ? ORDER BY id DESC", owner.user_id)
        check_pages([row[0] for row in rows], partial(playlists.list_editable, actor=owner), chance)

    store.write(change).result()
    sizes = store.read(partial(blocks, owner.user_id, list_blocks.PLAYLISTS.number)).result()
    assert len(sizes) > 1
    assert 0 < max(sizes) <= LONGEST
    store.write(list_blocks.rebuild).result()
    store.read(check).result()
    assert store.read(partial(blocks, 1, list_blocks.COMMENTS.number)).result() != []


def test_shared_playlists_are_shown_among_thousands_of_own_ones(store: Store, owner: Identity, seed: int) -> None:
    chance = random.Random(seed)

    def add() -> list[int]:
        _, ben = worlds.add_account(worlds.World("", 9), "ben")
        shared = []
        for _ in range(7):
            add_playlists(owner, chance.choice((0, 1, 2_700)))
            row = {"name": "Ours", "collaborative": True, "owner": ben.user_id, "created_at": 1}
            shared += [Playlist.create(**row).id for _ in range(chance.randrange(1, 4))]
        for each in shared:
            dates = {"created_at": 1, "expires_at": 2}
            PlaylistInvite.create(playlist=each, user=owner.user_id, state="accepted", **dates)
        return shared

    def check() -> None:
        rows = fetch("SELECT id FROM playlist ORDER BY id DESC")
        ids = [row[0] for row in rows]
        check_pages(ids, partial(playlists.list_editable, actor=owner), chance)
        for each in shared:
            number = ids.index(each)
            for size in SIZES:
                found = playlists.list_editable(Page(number // size + 1, size), actor=owner)
                assert each in [row.id for row in found.rows]
                assert found.ids == ids[number // size * size :][:size]

    shared = store.write(add).result()
    store.read(check).result()
    store.write(lambda: Playlist.delete().where(Playlist.owner == owner.user_id).execute()).result()
    store.read(check).result()


def test_units_that_write_at_the_same_time_are_counted_exactly(store: Store, owner: Identity, seed: int) -> None:
    chance = random.Random(seed)

    def change(own: random.Random) -> None:
        add_playlists(owner, own.randrange(1, 90))
        with suppress(UndoError), savepoint():
            add_playlists(owner, own.randrange(1, 90))
            if own.random() < 0.5:
                raise UndoError("no")
        if own.random() < 0.5:
            (last,) = fetch("SELECT max(id) FROM playlist")[0]
            Playlist.delete().where(Playlist.id == own.randrange(1, last + 1)).execute()
        if own.random() < 0.2:
            raise UndoError("no")

    changes = [store.write(partial(change, random.Random(chance.random()))) for _ in range(300)]
    wait(changes)
    assert {type(each.exception()) for each in changes} == {type(None), UndoError}
    # Units that were alone have divided the list meanwhile, or this one does.
    store.write(partial(add_playlists, owner, 2_000)).result()
    sizes = store.read(partial(blocks, owner.user_id, list_blocks.PLAYLISTS.number)).result()
    ((total,),) = store.read(partial(fetch, "SELECT count(*) FROM playlist")).result()
    assert len(sizes) > 1
    assert sum(sizes) == total == store.read(partial(list_blocks.PLAYLISTS.total, owner.user_id)).result()
    assert store.read(list_blocks.differences).result() == []


@pytest.mark.slow
def test_an_artist_with_many_albums_and_tracks_shows_their_numbers(store: Store, owner: Identity) -> None:
    def add() -> None:
        other = artists.create("Other", None, None, now=1, actor=owner).id
        ids = bulk.ids(Album, MANY)
        bulk.insert(Album, ("id", "name", "created_at"), [(each, "Album", 1) for each in ids])
        bulk.insert(AlbumArtist, ("album", "artist", "position"), [(each, 1, 0) for each in ids])
        bulk.insert(AlbumArtist, ("album", "artist", "position"), [(each, other, 1) for each in ids[:3]])
        made = bulk.ids(Track, MANY - 9)
        bulk.insert(Track, ("id", "name", "duration", "created_at"), [(each, "Track", 1, 1) for each in made])
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, 1, 0) for each in made])
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, other, 1) for each in made[:5]])

    store.write(add).result()
    rows = store.read(lambda: artists.list_all(Page()).rows).result()
    assert [(row.albums_count, row.tracks_count) for row in rows] == [(3, 5), (MANY, MANY - 9)]
    assert store.read(partial(artists.get, 1)).result() == rows[1]
    assert store.read(partial(albums.list_all, Page(451, 20))).result().total == MANY


@pytest.mark.slow
def test_the_tracks_of_an_artist_with_thousands_stay_in_order_of_plays(
    store: Store, owner: Identity, seed: int
) -> None:
    chance = random.Random(seed)

    def credit(tracks: Sequence[int], artist: int) -> None:
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, artist, artist) for each in tracks])

    def play(tracks: Sequence[int]) -> None:
        ingest.report(
            [ingest.ReportedPlay(track, chance.randrange(1, 10**12)) for track in tracks], now=10**12, actor=owner
        )

    def change() -> list[int]:
        other = artists.create("Other", None, None, now=1, actor=owner).id
        ids = bulk.ids(Track, LONGEST + 700)
        bulk.insert(Track, ("id", "name", "duration", "created_at"), [(each, "Track", 1, 1) for each in ids])
        play(chance.choices(ids, k=900))
        for start in range(0, len(ids), 100):
            credit(ids[start : start + 100], 1)
        credit(ids[::9], other)
        assert fetch("SELECT DISTINCT artist_id FROM track_rank") == [(1,)]
        for _ in range(4):
            play([*chance.choices(ids, k=400), *ids[:3] * 5])
            gone = chance.sample(ids, 20)
            TrackArtist.delete().where(TrackArtist.artist == 1, TrackArtist.track.in_(gone)).execute()
            credit(gone[::2], 1)
            ids = [each for each in ids if each not in gone[1::2]]
            check()
        return ids

    def check() -> None:
        assert list_blocks.differences() == []
        for artist in (1, 2):
            rows = fetch(PLAYED, artist)
            check_pages([row[0] for row in rows], partial(tracks.list_by_artist, artist), chance)

    ids = store.write(change).result()
    assert len(store.read(lambda: fetch("SELECT DISTINCT plays FROM track_rank")).result()) > 5
    store.write(lambda: run("DELETE FROM track_plays WHERE track_id < 30")).result()
    assert store.read(schema.problems).result() == ["counts: the tracks of artist 1 are ranked by wrong plays"]
    store.write(list_blocks.rebuild).result()
    verify.run(store, check=False, on_progress=lambda _done, _total: None)
    store.read(check).result()
    store.write(lambda: run("DELETE FROM track_rank WHERE track_id = ?", ids[-1])).result()
    assert store.read(schema.problems).result() == ["counts: the tracks of artist 1 are ranked by wrong plays"]
    store.write(list_blocks.rebuild).result()
    store.read(check).result()


def test_rows_that_may_be_there_already_are_counted_too(store: Store) -> None:
    names = [f"genre {number}" for number in range(MANY)]
    store.write(partial(genres.ensure, names)).result()
    store.write(lambda: Genre.insert_many([{"name": "genre-1", "display_name": "1"}]).on_conflict_ignore().execute())
    store.write(partial(genres.ensure, [*names[:9], "another", "one"])).result()
    assert store.read(list_blocks.differences).result() == []
    assert sum(store.read(partial(blocks, 0, list_blocks.GENRES.number)).result()) == MANY + 2


def test_wrong_counts_are_reported_and_corrected(store: Store, owner: Identity) -> None:
    def spoil() -> None:
        bulk.insert(Artist, ("name", "created_at"), [("Artist", 1)] * (MANY - 1))
        add_playlists(owner, MANY)
        run("UPDATE list_block SET size = size + 1 WHERE list = 4 AND first_key = 0")

    store.write(spoil).result()
    found = store.read(schema.problems).result()
    assert found == [f"counts: a block of the playlists of account {owner.user_id} has 2048 rows, not 2049"]
    store.write(list_blocks.rebuild).result()
    assert store.read(schema.problems).result() == []
    assert sum(store.read(partial(blocks, 0, list_blocks.ARTISTS.number)).result()) == MANY
