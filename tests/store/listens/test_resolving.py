"""Pending listens count once, whatever makes their track appear, and wait again if an undo takes it back."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import DAY, SECOND
from musicsvc.errors import Invalid
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import artists, tracks
from musicsvc.store.editing import deletions, edits
from musicsvc.store.engine import sql
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.undoing import undo
from musicsvc.store.listens import matching, pending, receiving, refusals, resolving
from musicsvc.store.listens.matching import Listen
from musicsvc.store.models import Artist, OwnPlayDay, PendingListen, Play, Track, TrackArtist
from musicsvc.store.plays import retention
from musicsvc.store.plays.reported import account_plays
from musicsvc.store.plays.reported.account_plays import Reports
from musicsvc.store.plays.subjects import ARTIST
from tests.conftest import NOW
from tests.support import play_counts, reported_plays
from tests.support.bounds import Bounds
from tests.support.catalog_import import import_rows
from tests.support.merges import merge
from tests.support.postgres_locks import require_begun_waits, require_wait
from tests.support.undoing import quiet, require_sound

AT = NOW - 600 * SECOND
NAMES = ("Ann Example", "Morning")
CODE = "USRC17607839"


@pytest.fixture
def ann(store: Store) -> Identity:
    return store.write(partial(reported_plays.account, reports_plays=False)).result()


def hear(store: Store, actor: Identity, *listens: Listen, now: int = NOW) -> None:
    """Report listens, as a player does."""
    found = store.read(partial(matching.find, listens)).result()
    unit = partial(receiving.receive, listens, found, now=now, actor=actor, accepted=True, daily=600)
    store.write(unit).result()


def settle(store: Store) -> None:
    """Let the server look at all that has changed."""
    while store.read(resolving.is_due).result():
        store.write(partial(resolving.advance, NOW)).result()


def heard(back: int = 0, artist: str = NAMES[0], title: str = NAMES[1], **more: Any) -> Listen:
    return Listen(AT - back * 60 * SECOND, artist, title, **more)


def make(title: str, artist: str, **more: Any) -> int:
    """Create a track of an artist, a new one unless it exists; within a unit."""
    found = Artist.select().where(Artist.name == artist).first() or Artist.create(name=artist, created_at=NOW)
    track = Track.create(name=title, duration=1000, created_at=NOW, **more)
    TrackArtist.create(track=track, artist=found, position=0)
    return int(track.id)


def played(store: Store) -> list[tuple[int, int]]:
    rows: list[tuple[int, int]] = store.read(
        lambda: sorted(Play.select(Play.track, Play.played_at).tuples().iterator())
    ).result()
    return rows


def waiting(store: Store, actor: Identity) -> dict[tuple[str, str], int]:
    def read() -> dict[tuple[str, str], int]:
        return {(e.artist, e.title): e.listens for e in pending.list_own(Page(1, 100), actor=actor).rows}

    return store.read(read).result()


def _create(store: Store, _file: Path) -> int:
    return store.write(partial(make, NAMES[1], NAMES[0])).result()


def _import(store: Store, file: Path) -> int:
    import_rows(store, file, [{"track": NAMES[1], "artist": NAMES[0]}])
    return int(store.read(lambda: Track.get().id).result())


def _rename_track(store: Store, _file: Path) -> int:
    track = store.write(partial(make, "Mourning", NAMES[0])).result()
    settle(store)
    store.write(lambda: edits.edit_track(tracks.get(track), {"name": NAMES[1]}, now=NOW)).result()
    return track


def _rename_artist(store: Store, _file: Path) -> int:
    track = store.write(partial(make, NAMES[1], "Anne Example")).result()
    settle(store)
    store.write(lambda: edits.edit_artist(artists.get(1), {"name": "ANN EXAMPLE"}, now=NOW)).result()
    return track


def _merge_tracks(store: Store, _file: Path) -> int:
    """The track of another artist takes over the names, before anything was looked at."""
    kept = store.write(partial(make, "Evening", "Somebody")).result()
    settle(store)
    gone = store.write(partial(make, NAMES[1], NAMES[0])).result()
    merge(store, "track", gone, kept)
    return kept


def _merge_artists(store: Store, _file: Path) -> int:
    """The artist of the title takes over the name of one without tracks, whose change was looked at."""
    track = store.write(partial(make, NAMES[1], "Somebody")).result()
    gone = store.write(lambda: Artist.create(name=NAMES[0], created_at=NOW).id).result()
    settle(store)
    merge(store, "artist", gone, store.read(lambda: Artist.get(Artist.name == "Somebody").id).result())
    return track


def _code(store: Store, _file: Path) -> int:
    return store.write(partial(make, "Else", "Somebody", isrc=CODE)).result()


def _merge_code(store: Store, _file: Path) -> int:
    """A track takes over the code of another, beside its own, before anything was looked at."""
    kept = store.write(partial(make, "Evening", "Somebody", isrc="USRC17607840")).result()
    merge(store, "track", _code(store, _file), kept)
    return kept


WAYS: list[Callable[[Store, Path], int]] = [
    _create, _import, _rename_track, _rename_artist, _merge_tracks, _merge_artists, _code, _merge_code,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_pending_listens_count_once_whatever_makes_their_track_appear(
    store: Store, ann: Identity, tmp_path: Path, way: Callable[[Store, Path], int]
) -> None:
    some = [heard(isrc=CODE), heard(3 * 24 * 60), heard(5, title="Other")]
    if way in {_code, _merge_code}:
        some[1] = some[1]._replace(isrc=CODE)
    hear(store, ann, *some)
    settle(store)
    assert (played(store), waiting(store, ann)) == ([], {NAMES: 2, ("Ann Example", "Other"): 1})
    track = way(store, tmp_path / "rows.jsonl")
    for _ in range(2):
        settle(store)
        assert played(store) == [(track, AT - 3 * DAY), (track, AT)]
        hear(store, ann, *some)  # a repeat
    assert waiting(store, ann) == {("Ann Example", "Other"): 1}
    require_sound(store)
    days = dict(store.read(lambda: [*OwnPlayDay.select(OwnPlayDay.day, OwnPlayDay.plays).tuples()]).result())
    assert days == {AT // DAY: 2, AT // DAY - 3: 1}


def test_more_listens_than_one_step_takes_count_though_others_come_in_before(store: Store, ann: Identity) -> None:
    number = resolving.LISTENS + 5
    hear(store, ann, *[heard(each) for each in range(number)])
    settle(store)
    store.write(partial(make, *reversed(NAMES))).result()
    hear(store, ann, heard(number, title="Other"))
    settle(store)
    assert (len(played(store)), waiting(store, ann)) == (number, {("Ann Example", "Other"): 1})


def test_listens_of_pruned_days_are_dropped_and_counted(store: Store, ann: Identity) -> None:
    hear(store, ann, heard(), heard(3 * 24 * 60), heard(3 * 24 * 60 + 1))
    retention.prune(store, 1, now=NOW, on_progress=quiet)
    track = store.write(partial(make, *reversed(NAMES))).result()
    settle(store)
    assert (played(store), waiting(store, ann)) == ([(track, AT)], {})
    assert store.read(PendingListen.select().count).result() == 1
    assert store.read(lambda: refusals.of_account(ann.user_id)).result() == [("pruned", 2, NOW)]


def test_a_listen_counts_whose_track_was_created_while_it_came_in(store: Store, ann: Identity) -> None:
    listens = [heard()]
    found = store.read(partial(matching.find, listens)).result()
    track = store.write(partial(make, *reversed(NAMES))).result()
    settle(store)
    unit = partial(receiving.receive, listens, found, now=NOW, actor=ann, accepted=True, daily=600)
    store.write(unit).result()
    settle(store)
    assert (found, played(store), waiting(store, ann)) == ([None], [(track, AT)], {})


def test_listens_wait_again_when_the_import_of_their_track_is_undone(
    store: Store, ann: Identity, tmp_path: Path
) -> None:
    hear(store, ann, heard(), heard(7), heard(9, title="Other"))
    rows = [{"track": NAMES[1], "artist": NAMES[0]}, {"track": "Other", "artist": NAMES[0]}]
    run = import_rows(store, tmp_path / "rows.jsonl", rows).run
    assert run is not None
    settle(store)
    hear(store, ann, heard(30, title="Other"))  # a play that never waited keeps its track
    assert (len(played(store)), waiting(store, ann)) == (4, {})
    done = undo.undo(store, run, now=NOW, on_progress=quiet)
    assert {reason for _, reason in done.kept} >= {"plays"}
    settle(store)
    assert (len(played(store)), waiting(store, ann)) == (2, {NAMES: 2})
    require_sound(store)
    store.write(partial(make, *reversed(NAMES))).result()
    settle(store)
    assert (len(played(store)), waiting(store, ann)) == (4, {})


def test_an_undo_looks_for_another_track_and_takes_back_no_track_with_plays_of_pruned_days(
    store: Store, ann: Identity, tmp_path: Path
) -> None:
    hear(store, ann, heard(), heard(7), heard(9, title="Other"), heard(3 * 24 * 60, title="Old"), heard(11, title="No"))
    rows = [{"track": title, "artist": NAMES[0]} for title in (NAMES[1], "Other", "Old")]
    run = import_rows(store, tmp_path / "rows.jsonl", rows).run
    assert run is not None
    settle(store)
    another, gone, old = store.write(lambda: [make(*reversed(NAMES)), *_ids("Other"), *_ids("Old")]).result()
    settle(store)
    store.write(lambda: deletions.delete(tracks.get(gone), now=NOW, account=None, actor="cli")).result()
    retention.prune(store, 1, now=NOW, on_progress=quiet)
    done = undo.undo(store, run, now=NOW, on_progress=quiet)
    assert done.kept["track", "plays"] == [old]
    settle(store)
    assert [track for track, _ in played(store)] == [gone, another, another]
    assert waiting(store, ann) == {("Ann Example", "No"): 1}
    assert store.read(partial(play_counts.all_time, ARTIST, 1)).result().plays == 4
    require_sound(store)


def _ids(title: str) -> list[int]:
    rows: Any = Track.select(Track.id).where(Track.name == title).tuples()
    return [number for (number,) in rows]


def test_dismissed_listens_keep_their_half_minutes(store: Store, ann: Identity) -> None:
    hear(store, ann, heard(), heard(5, title="Other"))
    store.write(lambda: pending.dismiss(None, actor=ann)).result()
    store.write(partial(make, *reversed(NAMES))).result()
    for _ in range(2):
        hear(store, ann, heard(), heard(5, title="Other"))
        settle(store)
        assert (played(store), waiting(store, ann)) == ([], {})
        store.write(lambda: account_plays.withdraw_batch(Reports(ann.user_id), now=NOW, actor="cli")).result()
    rows = store.read(lambda: [*PendingListen.select(PendingListen.artist, PendingListen.title).tuples()]).result()
    assert rows == [("", "")] * 2  # what they were is not kept


def test_what_the_account_withdraws_frees_its_half_minute(store: Store, ann: Identity) -> None:
    hear(store, ann, heard(), heard(5))
    track = store.write(partial(make, *reversed(NAMES))).result()
    settle(store)
    reports = Reports(ann.user_id)
    store.write(lambda: account_plays.withdraw_batch(reports, now=NOW, actor="cli")).result()
    assert (played(store), store.read(PendingListen.select().count).result()) == ([], 0)
    hear(store, ann, heard())
    assert played(store) == [(track, AT)]


def test_many_listens_that_their_person_names_are_counted_in_steps(store: Store, ann: Identity, bounds: Bounds) -> None:
    bounds(named_at_once=2, listens_a_step=3)
    hear(store, ann, *[heard(each) for each in range(9)], *[heard(30 + each, title="Other") for each in range(4)])
    track, kept = (store.write(partial(make, title, "Somebody")).result() for title in ("Evening", "Night"))
    settle(store)
    for listen in (heard(), heard(title="Other")):
        names, _ = matching.keys(listen)
        store.write(partial(pending.name, names, track, actor=ann, now=NOW)).result()
    assert (len(played(store)), waiting(store, ann)) == (4, {})
    store.write(partial(resolving.advance, NOW)).result()
    assert len(played(store)) == 4 + 3
    store.write(lambda: account_plays.withdraw_batch(Reports(ann.user_id), now=NOW, actor="cli")).result()
    merge(store, "track", track, kept)
    settle(store)
    assert Counter(each for each, _ in played(store)) == {kept: 13 - 7}  # which were no plays yet
    assert waiting(store, ann) == {}
    require_sound(store)


def test_named_listens_wait_again_when_their_track_goes_first(store: Store, ann: Identity, bounds: Bounds) -> None:
    bounds(named_at_once=1)
    hear(store, ann, *[heard(each) for each in range(4)])
    track = store.write(partial(make, "Evening", "Somebody")).result()
    names = store.read(lambda: PendingListen.get().names).result()
    store.write(partial(pending.name, names, track, actor=ann, now=NOW)).result()
    store.write(lambda: deletions.delete(tracks.get(track), now=NOW, account=None, actor="cli")).result()
    settle(store)
    assert waiting(store, ann) == {NAMES: 3}


def _receive(_store: Store, track: int, ann: Identity) -> None:
    receiving.receive([heard()], [track], now=NOW, actor=ann, accepted=True, daily=600)


def _name(_store: Store, track: int, ann: Identity) -> None:
    (entry,) = pending.list_own(Page(1, 1), actor=ann).rows
    pending.name(pending.find_own(entry.id, actor=ann), track, actor=ann, now=NOW)


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize("report", [_receive, _name])
def test_no_play_is_counted_for_a_track_that_another_node_deletes_meanwhile(
    store: Store, ann: Identity, report: Callable[[Store, int, Identity], None]
) -> None:
    hear(store, ann, heard(1))
    track = store.write(partial(make, "Noon", NAMES[0])).result()

    def delete() -> None:
        deletions.delete(tracks.get(track), now=NOW, account=None, actor="cli")

    with suppress(Invalid):
        require_begun_waits(store, delete, lambda: store.write(partial(report, store, track, ann)))
    settle(store)
    assert played(store) == []
    assert waiting(store, ann)[NAMES] >= 1
    require_sound(store)


@pytest.mark.only_on("postgres")
def test_a_listen_is_dismissed_before_or_after_another_node_counts_it(store: Store, ann: Identity) -> None:
    hear(store, ann, heard(1))
    require_wait(store, partial(sql.lock, resolving.LOCK), partial(pending.dismiss, None, actor=ann))
    assert waiting(store, ann) == {}
