"""Merges keep what refers to the merged row. Nothing changes if one is refused."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from musicsvc.errors import Conflict, Failure, Forbidden, NotFound
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import album_sizes, import_lock, tracks
from musicsvc.store.editing import deletions, merging
from musicsvc.store.editing.merging import Noun
from musicsvc.store.engagement import comments, likes
from musicsvc.store.engine.store import Store
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Collection,
    CollectionTrack,
    DroppedPlay,
    Play,
    Playlist,
    PlaylistTrack,
    Track,
    TrackLike,
)
from musicsvc.store.plays import counting, retention
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from tests.conftest import NOW
from tests.support import play_counts
from tests.support.bounds import Bounds
from tests.support.merges import FIRST_PAGE, contents, merge
from tests.support.postgres_locks import require_wait
from tests.support.reported_plays import report
from tests.support.undoing import DAY, quiet, require_sound


def use(fan: Identity, other: Identity) -> None:
    """Let two accounts like, comment on and collect the tracks 1 and 3 of the world; within a unit."""
    for track, by, at in ((1, fan, 1), (3, fan, 2), (3, other, 3)):
        likes.add(likes.LIKE, track, now=at * DAY * 1_000_000, actor=by)
    likes.add(likes.REPOST, 3, now=NOW, actor=other)
    for track, position, text, at in (
        (1, 10, "b", 1),
        (1, 50, "e", 2),
        (3, 10, "c", 3),
        (3, 5, "a", 4),
        (3, 50, "g", 5),
    ):
        made = comments.create(track, text, position=position, now=at, actor=fan)
        if text in "ce":
            comments.create(track, f"{text} reply", parent_id=made.id, now=NOW, actor=other)
    playlist = Playlist.create(owner=fan.user_id, name="Mix", created_at=NOW).id
    for track in (3, 2, 1, 3):
        PlaylistTrack.create(playlist=playlist, track=track, added_at=NOW)
    collection = Collection.create(user=fan.user_id, name="Mine", created_at=NOW).id
    for position, track in enumerate((1, 3)):
        CollectionTrack.create(collection=collection, track=track, position=position)


def test_what_accounts_gave_to_a_track_moves_to_the_other(store: Store, fans: list[Identity]) -> None:
    store.write(partial(use, *fans)).result()
    shown = merge(store, "track", 3, 1)
    moved = {"likes": 1, "reposts": 1, "playlist_entries": 2, "collection_entries": 1, "comments": 4}
    assert (shown.moved, shown.moves[2]) == (moved, "2 playlist entries")

    def found() -> list[Any]:
        track = Track.get_by_id(1)
        return [
            [row.content for row in comments.list_by_track(1, FIRST_PAGE).rows],
            sorted((row.user, row.created_at // 1_000_000 // DAY) for row in TrackLike.select()),
            (track.likes_count, track.reposts_count),
            [row.track for row in PlaylistTrack.select().order_by(PlaylistTrack.id)],
            [row.track for row in CollectionTrack.select().order_by(CollectionTrack.position)],
        ]

    assert store.read(found).result() == [
        ["a", "b", "c", "c reply", "e", "e reply", "g"],
        [(fans[0].user_id, 1), (fans[1].user_id, 3)],
        (2, 1),
        [1, 2, 1, 1],
        [1, 1],
    ]
    require_sound(store)
    store.write(lambda: comments.create(1, "d", position=10, now=NOW, actor=fans[0])).result()
    assert store.read(found).result()[0] == ["a", "b", "c", "c reply", "d", "e", "e reply", "g"]


def test_of_plays_of_one_listener_in_one_half_minute_one_stays_and_repeats_are_recognized(
    store: Store, fans: list[Identity]
) -> None:
    slot = NOW - NOW % SLOT - DAY * 1_000_000

    def play(track: int, second: int, client_id: str | None, listener: str = "ann") -> ReportedPlay:
        return ReportedPlay(track, slot + second * 1_000_000, listener, client_id=client_id)

    first = [play(1, 1, "b"), play(3, 2, None), play(3, 3, "c"), play(1, 4, "d", "bea"), play(3, 5, "e", "bea")]
    alone = [play(3, 6, "f", "cy"), play(3, 7, "g", "cy")]
    assert report(store, [*first, *alone], fans[0]).accepted == 7
    shown = merge(store, "track", 3, 1)
    assert (shown.repeated_plays, shown.moved) == (3, {"plays": 3})
    rows = store.read(lambda: sorted((row.track, row.played_at - slot, row.client_key == b"") for row in Play.select()))
    assert [(track, at // 1_000_000, plain) for track, at, plain in rows.result()] == [
        (1, 2, True), (1, 4, False), (1, 6, False), (1, 7, False),
    ]  # fmt: skip
    again = report(store, [each._replace(track_id=1) for each in (*first, *alone)], fans[0])
    assert (again.accepted, again.repeated, again.refused) == (0, 7, [])
    assert report(store, first[1:2], fans[0]).refused == [(0, "There is no such track.")]
    assert report(store, [play(1, 8, "b", "dan")], fans[1]).accepted == 1  # ids are those of an account
    require_sound(store)
    assert store.read(DroppedPlay.select().count).result() == 3
    retention.prune(store, 1, now=slot + 2 * DAY * 1_000_000, on_progress=quiet)
    assert store.read(lambda: [model.select().count() for model in (Play, DroppedPlay)]).result() == [0, 0]


def test_counts_of_days_without_single_plays_are_added_up(store: Store, fans: list[Identity]) -> None:
    day = 86_400 * 1_000_000
    plays = [ReportedPlay(track, NOW - back * day, "ann") for track, back in ((1, 50), (3, 50), (3, 40), (3, 1))]
    report(store, [*plays, ReportedPlay(3, NOW - 50 * day, "bea"), ReportedPlay(2, NOW - 2 * day, "cy")], fans[0])
    play_counts.roll_up(store)
    retention.prune(store, 10, now=NOW, on_progress=quiet)
    assert merge(store, "track", 3, 1).moved == {"plays": 4}  # the two of one half minute cannot be told apart any more
    found = store.read(
        lambda: [play_counts.all_time(*each) for each in ((TRACK, 1), (ALBUM, 1), (ARTIST, 1), (ARTIST, 2))]
    )
    assert [(each.plays, len(each.listeners)) for each in found.result()] == [(5, 2), (6, 3), (6, 3), (1, 1)]
    require_sound(store)


FORBIDDEN: Sequence[tuple[Noun, int, int, int]] = [("artist", 1, 2, 2), ("track", 3, 1, 3), ("track", 2, 3, 3)]
REFUSED: Sequence[tuple[Noun, int, int, type[Failure], str]] = [
    ("track", 9, 1, NotFound, "There is no track 9"),
    ("album", 1, 9, NotFound, "There is no album 9"),
    ("artist", 1, 1, Conflict, "Artist 1 cannot be merged into itself"),
]


def test_only_who_manages_both_or_an_administrator_merges_and_unknown_ids_are_named(
    store: Store, fans: list[Identity]
) -> None:
    def assign() -> None:
        for number, manager in enumerate(fans, 1):
            Artist.update(manager=manager.user_id).where(Artist.id == number).execute()

    store.write(assign).result()
    for noun, source, target, refused in FORBIDDEN:
        with pytest.raises(Forbidden, match=f"You do not manage {noun} {refused}"):
            merge(store, noun, source, target, caller=fans[0])
        with pytest.raises(Forbidden, match=f"You do not manage {noun} {refused}"):
            store.read(partial(merging.preview, noun, source, target, caller=fans[0])).result()
    for noun, source, target, error, words in REFUSED:
        with pytest.raises(error, match=words):
            merge(store, noun, source, target)
    merge(store, "track", 2, 1, caller=fans[0])  # which both manage
    merge(store, "artist", 1, 2, caller=fans[0]._replace(admin=True))
    with pytest.raises(NotFound, match="There is no artist 1"):
        merge(store, "artist", 1, 2)


@pytest.mark.usefixtures("fans")
def test_an_album_that_would_be_too_large_is_refused_and_nothing_changes(store: Store, bounds: Bounds) -> None:
    def other() -> None:
        Album.create(name="Other", created_at=NOW)
        AlbumArtist.create(album=2, artist=2, position=0)
        Track.update(album=2).where(Track.id == 3).execute()

    store.write(other).result()
    before = store.read(contents).result()
    bounds(most_tracks=2)
    for source, target in ((1, 2), (2, 1)):
        with pytest.raises(Conflict, match="An album holds at most 2 tracks"):
            merge(store, "album", source, target)
    bounds(largest_album=store.read(lambda: album_sizes.measure([1])[1].bytes).result())
    store.write(lambda: Artist.update(name="Long" * 50).where(Artist.id == 2).execute()).result()
    with pytest.raises(Conflict, match="Album 1: An album with its tracks takes at most"):
        merge(store, "artist", 1, 2)
    store.write(lambda: Artist.update(name="Artist 2").where(Artist.id == 2).execute()).result()
    assert store.read(contents).result() == before


@pytest.mark.only_on("postgres")
@pytest.mark.usefixtures("fans")
def test_a_merge_waits_for_imports_and_plays(store: Store) -> None:
    require_wait(store, import_lock.lock_imports, partial(merging.merge, "artist", 2, 1, now=NOW))
    require_wait(store, counting.lock, partial(merging.merge, "track", 2, 1, now=NOW))


@pytest.mark.only_on("postgres")
@pytest.mark.usefixtures("fans")
def test_of_two_merges_of_a_row_at_once_the_second_finds_none(store: Store) -> None:
    def second() -> None:
        with pytest.raises(NotFound, match="There is no artist 2"):
            merging.merge("artist", 2, 1, now=NOW)

    def first() -> None:
        merging.merge("artist", 2, 1, now=NOW)

    require_wait(store, first, second)


@pytest.mark.only_on("postgres")
@pytest.mark.usefixtures("fans")
def test_what_is_deleted_meanwhile_cannot_be_merged_into(store: Store) -> None:
    def second() -> None:
        with pytest.raises(NotFound, match="There is no track 1"):
            merging.merge("track", 2, 1, now=NOW)

    def first() -> None:
        deletions.delete(tracks.get(1), now=NOW, account=None, actor="cli")

    require_wait(store, first, second)
