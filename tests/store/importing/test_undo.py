"""`import undo` in the store: whatever was imported, the state after the undo is the state before."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.errors import Failure, NotFound
from musicsvc.store import models
from musicsvc.store.accounts import users
from musicsvc.store.catalog import tracks
from musicsvc.store.editing import deletions, edits
from musicsvc.store.engagement import likes
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.importing.undoing import made_rows, runs, undo
from musicsvc.store.models import (
    AlbumArtist,
    Artist,
    Comment,
    Play,
    Track,
    User,
)
from musicsvc.store.plays import retention
from musicsvc.store.plays.rollups import counts
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.examples import examples
from tests.support.import_files import Import, Rows, import_file
from tests.support.undoing import AT, DAY, FAN, LABEL, OPTIONS, dump, quiet, require_sound, undone

NAMES = some.sampled_from(["Rag", "Waltz", "New", "Other"])
CATALOG = some.fixed_dictionaries(
    {
        "track": NAMES,
        "artist": some.sampled_from(["Ann", "Bea", "Ann;Bea", "Cleo", "Cleo;Ann"]),
        "external_id": some.sampled_from([None, "1", "2", "3"]),
        "album": some.sampled_from([None, "One", "Two"]),
        "album_external_id": some.sampled_from([None, "a"]),
        "album_artist": some.sampled_from([None, None, "Bea", "Cleo;Ann"]),
        "genre": some.sampled_from([None, "jazz", "pop;rock"]),
        "tags": some.sampled_from([None, "old", "loud;slow"]),
        "release_date": some.sampled_from([None, "2001", "2002-05-06"]),
        "bpm": some.sampled_from([None, 90, 120]),
        "isrc": some.sampled_from([None, None, "GBAYE6800011", "USX9X2400001"]),
        "explicit": some.sampled_from([None, True, False]),
        "label": some.sampled_from([None, "Blue"]),
    }
)
PLAYS = some.fixed_dictionaries(
    {
        "track": NAMES,
        "artist": some.sampled_from(["Ann", "Bea", "Dora"]),
        "listener": some.sampled_from(["other", "third"]),
        "played_at": some.integers(0, 100).map(lambda at: AT - 7 * at - (at % 5) * 17 * DAY),
        "client_id": some.sampled_from([None, None, "a", "b"]),
    }
)
ACCOUNTS = some.sampled_from([LABEL, "u1", "u2", "u3", "new@label.test"])
FOLLOWS = some.fixed_dictionaries({"follower": ACCOUNTS, "followed": ACCOUNTS})
ENTRIES = some.fixed_dictionaries(
    {"playlist": some.sampled_from(["Mix", "Mine"]), "external_id": some.sampled_from(["1", "2"])}
)
ROWS = {"catalog": CATALOG, "plays": PLAYS, "follows": FOLLOWS, "playlists": ENTRIES}
IMPORTS = some.sampled_from(["catalog", "catalog", "plays", "plays", "follows", "playlists"]).flatmap(
    lambda kind: some.tuples(some.just(kind), some.lists(ROWS[kind], min_size=1, max_size=12))
)


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    """Return a function that imports rows, and checks after each batch that its counts are recorded."""

    def check(summary: ImportSummary) -> None:
        found = store.read(partial(runs.get, summary.run or 0)).result()
        assert (found.rows, found.state) == (summary.rows, "running")
        assert found.counts == {kind: asdict(counts) for kind, counts in summary.counts.items()}

    def run(kind: str, rows: Rows) -> ImportSummary:
        return import_file(store, tmp_path / f"{kind}.jsonl", OPTIONS[kind](), rows, on_progress=check)

    return run


@pytest.fixture
def world(store: Store, imported: Import, bounds: Bounds) -> None:
    """Create the label with the track Rag (1) on One, and Waltz (2), plays of both on two days, and a like."""
    bounds(taken_at_once=3, undone_at_once=2, restored_at_once=2, rows_a_unit=4)
    store.write(lambda: users.create(LABEL, now=NOW).id).result()
    rag = {"external_id": "1", "track": "Rag", "artist": "Ann", "album": "One", "genre": "jazz", "tags": "old"}
    imported("catalog", [rag, {"external_id": "2", "track": "Waltz", "artist": "Ann;Bea"}])
    rows = [{"external_id": track, "played_at": AT - day * DAY} for track, day in (("1", 0), ("1", 50), ("2", 0))]
    imported("plays", [*rows, rows[0] | {"listener": "other"}])
    imported("playlists", [{"playlist": "Mix", "external_id": "1"}])
    store.write(lambda: likes.add(likes.LIKE, 1, now=NOW, actor=FAN)).result()


@pytest.mark.slow
@pytest.mark.usefixtures("world")
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=some.lists(IMPORTS, min_size=1, max_size=4), order=some.randoms(use_true_random=False))
def test_whatever_is_imported_and_undone_in_any_order_the_state_is_as_before(
    store: Store, imported: Import, batch: list[tuple[str, Rows]], order: Any
) -> None:
    before = dump(store)
    ids = [imported(kind, rows).run for kind, rows in batch]
    require_sound(store)
    shuffled = [*ids]
    order.shuffle(shuffled)
    left = [run for run in shuffled if undone(store, run).run.state == "partly"]
    require_sound(store)
    for run in sorted(left, key=lambda run: run or 0, reverse=True):
        assert undone(store, run).run.state == "undone"
    assert dump(store) == before
    require_sound(store)


@pytest.mark.usefixtures("world")
def test_the_artists_of_an_album_return_to_their_earlier_order(store: Store, imported: Import) -> None:
    def order() -> list[str]:
        rows = AlbumArtist.select(Artist.name).join(Artist).where(AlbumArtist.album == 2)
        rows = rows.order_by(AlbumArtist.position)
        return [name for (name,) in rows.tuples().iterator()]

    row = {"album": "Two", "album_external_id": "a"}
    imported("catalog", [row | {"track": "A", "artist": "Bea"}, row | {"track": "B", "artist": "Cleo"}])
    orders = [store.read(order).result()]
    runs = []
    for more in ({"artist": "Dora", "album_artist": "Various"}, {"artist": "Dora", "album_artist": "Dora;Eve"}):
        runs.append(imported("catalog", [row | {"track": "C"} | more, row | {"track": "D", "artist": "Finn"}]).run)
        orders.append(store.read(order).result())
    assert orders == [
        ["Bea", "Cleo"],
        ["Various", "Bea", "Cleo", "Dora", "Finn"],
        ["Dora", "Eve", "Various", "Bea", "Cleo", "Finn"],
    ]
    assert undone(store, runs[0]).kept[("album", "artists changed since")] == [2]
    assert store.read(order).result() == orders[2]
    undone(store, runs[1])
    assert store.read(order).result() == orders[1]
    undone(store, runs[0])
    assert store.read(order).result() == orders[0]


def song(track: str, **more: object) -> dict[str, object]:
    return {"track": track, "artist": "Cleo", "external_id": track} | more


@pytest.mark.usefixtures("world")
def test_what_others_refer_to_is_kept_and_named_and_goes_once_they_do_not(store: Store, imported: Import) -> None:
    before = dump(store)
    names = ("Liked", "Said", "Played", "Listed", "Changed", "Free")
    first = imported("catalog", [song(name, album="Lp", genre="new") for name in names]).run
    ids = dict(store.read(lambda: list(Track.select(Track.name, Track.id).tuples().iterator())).result())

    def use() -> int:
        likes.add(likes.LIKE, ids["Liked"], now=NOW, actor=FAN)
        comment = {"content": "!", "position": 0, "depth": 0, "place": 1, "created_at": 1}
        return int(Comment.create(track=ids["Said"], user=1, **comment).id)

    comment = store.write(use).result()
    played = imported("plays", [{"external_id": "Played", "played_at": AT}]).run
    listed = imported("playlists", [{"playlist": "Mix", "external_id": "Listed"}]).run
    changed = imported("catalog", [song("Changed", bpm=99, album="Lp")]).run
    summary = undone(store, first)
    assert (summary.run.state, summary.counts["track"]) == ("partly", 1)
    kept = {reason: some for (table, reason), some in summary.kept.items() if table == "track"}
    wanted = {"likes": "Liked", "comments": "Said", "plays": "Played", "playlists": "Listed"}
    assert kept == {reason: [ids[name]] for reason, name in (wanted | {f"import {changed}": "Changed"}).items()}
    assert [reason for table, reason in summary.kept if table in {"album", "artist"}] == ["tracks", "albums, tracks"]
    require_sound(store)
    store.write(lambda: likes.remove(likes.LIKE, ids["Liked"], actor=FAN)).result()
    store.write(lambda: Comment.delete().where(Comment.id == comment).execute()).result()
    for run in (changed, listed, played, first):
        assert undone(store, run).run.state == "undone"
    assert dump(store) == before


@pytest.mark.usefixtures("world")
def test_what_was_edited_stays_with_its_artist_and_what_was_deleted_is_no_obstacle(
    store: Store, imported: Import
) -> None:
    songs = [song(name, album="Lp") for name in ("Edited", "Free")]
    run = imported("catalog", [*songs, song("Deleted", album="Lp", artist="Solo")]).run
    ids = dict(store.read(lambda: list(Track.select(Track.name, Track.id).tuples().iterator())).result())
    played = imported("plays", [{"external_id": "Deleted", "played_at": AT}]).run

    def use() -> None:
        edits.edit_track(tracks.get(ids["Edited"]), {"album_id": None}, now=NOW)
        deletions.delete(tracks.get(ids["Deleted"]), now=NOW, account=None, actor="cli")

    store.write(use).result()
    again = imported("plays", [{"external_id": "Deleted", "played_at": AT}])
    assert (again.refused, again.counts["plays"].repeated) == ([], 1)  # it is the play of the deleted track
    summary = undone(store, run)
    assert summary.kept[("track", "edited")] == [ids["Edited"]]
    assert [table for table, _ in summary.kept] == ["track", "artist"]
    assert (summary.counts["track"], summary.counts["album"], summary.counts["artist"]) == (1, 2, 1)
    require_sound(store)  # the account has not the play any more that counted for its artist
    assert undone(store, played).plays == 1
    require_sound(store)


@pytest.mark.usefixtures("world")
def test_values_that_changed_since_stay_and_the_rest_is_restored(store: Store, imported: Import) -> None:
    imported("catalog", [song("More"), song("Less"), song("Free")])
    ids = dict(store.read(lambda: list(Track.select(Track.name, Track.id).tuples().iterator())).result())
    rag = {"external_id": "1", "track": "Ragtime", "artist": "Ann", "album": "One", "bpm": 99}
    run = imported("catalog", [rag, *(song(name, bpm=98) for name in ("More", "Less", "Free"))]).run
    changed = [1, ids["More"], ids["Less"]]
    store.write(lambda: Track.update(bpm=100).where(Track.id.in_(changed)).execute()).result()
    summary = undone(store, run)
    assert summary.kept == {("track", "bpm changed since"): [ids["Less"], ids["More"], 1]}
    assert summary.counts == {"track": 1}
    track = store.read(lambda: Track.get_by_id(1)).result()
    assert (track.name, track.bpm, summary.run.state) == ("Rag", 100, "partly")
    assert store.read(lambda: Track.get_by_id(ids["Free"]).bpm).result() is None
    store.write(lambda: Track.update(bpm=99).where(Track.id == 1).execute()).result()
    store.write(lambda: Track.update(bpm=98).where(Track.id.in_(changed[1:])).execute()).result()
    summary = undone(store, run)
    assert (summary.run.state, summary.kept, summary.counts) == ("undone", {}, {"track": 3})
    assert store.read(lambda: Track.get_by_id(1).bpm).result() is None


def test_whatever_refers_to_a_row_that_an_import_created_is_named() -> None:
    account = "artist collection comment device follow message password_link playlist report_link session token"
    nouns = {name: f"{name}s" for name in account.split()} | {
        "import_task": "uploads",
        "notification_choice": "notification_choices",
        "participant": "participants",
        "playlist_invite": "invitations",
        "playlist_track": "playlists",
        "track_like": "likes",
        "track_repost": "reposts",
    }
    expected: dict[str, dict[str, str]] = {
        "playlist_track": {},
        "playlist": {"playlist_invite": "invitations", "playlist_track": "playlists"},
        "follow": {},
        "account": nouns,
        "track": {"collection_track": "collections", "comment": "comments", "playlist_track": "playlists"}
        | {"track_like": "likes", "track_repost": "reposts"},
        "album": {"album_tag": "albums", "track": "tracks"},
        "artist": {"album_artist": "albums", "track_artist": "tracks"},
        "genre": {"track_genre": "tracks"},
        "tag": {"album_tag": "albums", "track_tag": "tracks"},
    }
    found = {
        runs.table_name(table): {
            runs.table_name(other): made_rows.noun(other) for other in models.tables() if made_rows.links(other, table)
        }
        for table in (*undo.MADE_BEFORE, *undo.MADE_AFTER)
    }
    assert found == expected


@pytest.mark.usefixtures("world")
def test_an_account_that_somebody_uses_is_kept_and_others_leave_the_search(store: Store, imported: Import) -> None:
    run = imported("follows", [{"follower": "used@label.test", "followed": "gone@label.test"}]).run
    store.write(lambda: User.update(password_hash="x").where(User.email == "used@label.test").execute()).result()
    summary = undone(store, run)
    assert [reason for _, reason in summary.kept] == ["its owner"]
    assert (summary.counts["follow"], summary.counts["account"]) == (1, 1)
    assert store.read(lambda: sql.fetch("SELECT count(*) FROM account_search")).result()[0][0] == 2


@pytest.mark.usefixtures("world")
def test_plays_that_were_pruned_stay_in_the_figures_and_are_named(store: Store, imported: Import) -> None:
    rows = [{"external_id": "2", "played_at": AT - day * DAY} for day in (90, 1)]
    run = imported("plays", rows).run
    retention.prune(store, 30, now=NOW, on_progress=quiet)
    summary = undone(store, run)
    assert (summary.plays, summary.pruned, summary.run.state) == (1, True, "undone")
    require_sound(store)


@pytest.mark.usefixtures("world")
def test_an_import_that_is_undone_or_unknown_cannot_be_undone(store: Store, imported: Import) -> None:
    run = imported("plays", [{"external_id": "1", "played_at": AT - 7}]).run
    undone(store, run)
    with pytest.raises(Failure, match=f"Import {run} was undone on 2026-03-01 already"):
        undone(store, run)
    with pytest.raises(NotFound, match=r"There is no import 99; musicsvc import list shows all\.$"):
        undone(store, 99)


@pytest.mark.usefixtures("world")
def test_an_undo_that_was_cut_short_is_continued(store: Store, imported: Import) -> None:
    before = dump(store)
    run = imported("plays", [{"track": f"T{at}", "artist": "New", "played_at": AT - 60 * at} for at in range(9)]).run

    def cut(done: int, total: int) -> None:
        assert total == 9 + 1 + 9  # plays, an artist, tracks
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        undo.undo(store, run or 0, now=NOW, on_progress=cut)
    require_sound(store)
    assert store.read(lambda: runs.get(run or 0).state).result() == "undoing"
    assert 0 < store.read(Play.select().where(Play.import_id == run).count).result() < 9
    assert undone(store, run).run.state == "undone"
    assert dump(store) == before


@pytest.mark.slow
@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("kind", ["catalog", "plays"])
def test_an_import_that_is_undone_while_it_runs_stops(
    store: Store, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, size = dump(store), 90
    monkeypatch.setattr(type(OPTIONS[kind]()), "rows_a_unit", size)
    rows = [{"track": f"S{at}", "artist": "Cleo", "played_at": AT - 60 * at} for at in range(size + 1)]

    def stop(summary: ImportSummary) -> None:
        if summary.rows == size:
            undone(store, summary.run)

    with pytest.raises(Failure, match="was undone while it ran"):
        import_file(store, tmp_path / "songs.jsonl", OPTIONS[kind](), rows, on_progress=stop)
    assert dump(store) == before
    newest = store.read(runs.newest).result()[0]
    assert (newest.state, newest.file) == ("undone", "songs.jsonl")


@pytest.mark.usefixtures("world")
def test_a_day_that_is_taken_back_in_several_parts_is_counted_whole(store: Store, imported: Import) -> None:
    before = dump(store)
    rows = [{"track": f"T{at}", "artist": f"A{at}", "played_at": AT - 60 * (at // 2)} for at in range(11)]
    run = imported("plays", rows).run
    assert undone(store, run).plays == 11
    assert dump(store) == before
    require_sound(store)


@pytest.mark.usefixtures("world")
def test_a_track_that_the_same_import_made_and_changed_is_deleted(store: Store, imported: Import) -> None:
    before = dump(store)
    filler = [song(f"F{at}") for at in range(4)]
    rows = [{"track": "Two", "artist": "Ann", "external_id": "two"}, *filler]
    rows.append({"track": "Two", "artist": "Ann", "external_id": "two", "bpm": 99, "genre": "pop"})
    number = imported("catalog", rows).run
    assert undone(store, number).run.state == "undone"
    assert dump(store) == before


@pytest.mark.usefixtures("world")
def test_an_artist_and_an_album_to_which_an_undo_would_return_are_kept_for_it(store: Store, imported: Import) -> None:
    before = dump(store)
    waltz = {"track": "Waltz", "external_id": "2"}
    first = imported("catalog", [waltz | {"artist": "Zoe", "album": "Lp"}]).run
    second = imported("catalog", [waltz | {"artist": "Yan", "album": "Ep"}]).run
    summary = undone(store, first)
    assert summary.run.state == "partly"
    assert {table: reason for table, reason in summary.kept if table != "track"} == {
        "album": f"import {second}",
        "artist": f"albums, import {second}",
    }
    assert undone(store, second).run.state == "undone"
    assert undone(store, first).run.state == "undone"
    assert dump(store) == before
    require_sound(store)


@pytest.mark.only_on("sqlite")
@pytest.mark.usefixtures("world")
def test_ranks_and_weeks_follow_plays_that_are_taken_back(store: Store, imported: Import, bounds: Bounds) -> None:
    bounds(taken_at_once=500)
    many = [{"external_id": "1", "played_at": AT - 600 * at, "listener": f"l{at % 9}"} for at in range(2_600)]
    store.write(lambda: sql.run("UPDATE play_progress SET block8 = ?", counts.start(counts.BLOCK8, 0))).result()
    imported("plays", many)
    eights = "SELECT count(*) FROM play_count WHERE key >= ? AND key < ?"
    assert store.read(lambda: sql.fetch(eights, 1 << 61, 2 << 61)).result()[0][0] > 0
    # The list of an artist's tracks has blocks, and the tracks have ranks, from this row on.
    store.write(lambda: sql.run("INSERT INTO list_block VALUES (7, 1, 0, 0, 0, 2)")).result()
    ranks = "SELECT plays, track_id FROM track_rank ORDER BY plays"
    before = store.read(lambda: sql.fetch(ranks)).result()
    number = imported("plays", [row | {"listener": "wrong"} for row in many[::3]]).run
    assert store.read(lambda: sql.fetch(ranks)).result() != before
    undone(store, number)
    assert store.read(lambda: sql.fetch(ranks)).result() == before
    require_sound(store)


def test_the_recorded_span_of_an_imports_plays_covers_all_of_its_batches(store: Store) -> None:
    run = store.write(lambda: runs.start("plays", "a.csv", None, {}, NOW, "cli")).result()
    for slots in ([5, 9], [7], [3, 4], [20]):
        store.write(partial(runs.add_slots, run, slots)).result()
    row = store.read(partial(models.ImportRun.get_by_id, run)).result()
    assert (row.first_slot, row.last_slot) == (3, 20)
