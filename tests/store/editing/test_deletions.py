"""Deletions take no plays from what else these belong to, merges keep all; a recount finds the same figures."""

import random
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, Forbidden, NotFound
from musicsvc.store import opening
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import albums, artists, tracks
from musicsvc.store.editing import deletions, edits, merging
from musicsvc.store.editing.merging import Noun
from musicsvc.store.engagement import comments, likes
from musicsvc.store.engine.name_index import TRACKS
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import engagement, scopes
from musicsvc.store.insights.listening.scope_totals import DetailedTotals
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Comment,
    DeletedTrack,
    Playlist,
    PlaylistTrack,
    Track,
    TrackLike,
)
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting, history, ingest, periods
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY
from musicsvc.store.plays.rollups import blocks, listeners, withdrawal
from musicsvc.store.plays.rollups.withdrawal import Selection
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from musicsvc.store.recounting import explain
from musicsvc.store.security import security_events
from tests.conftest import NOW
from tests.support import play_counts
from tests.support.examples import examples
from tests.support.postgres_locks import require_begun_waits
from tests.support.reported_plays import SPANS, TODAY, account, report, world
from tests.support.undoing import require_sound

FIND: dict[int, Callable[[int], Any]] = {TRACK: tracks.get, ALBUM: albums.get, ARTIST: artists.get}
NOUNS: dict[int, Noun] = {TRACK: "track", ALBUM: "album", ARTIST: "artist"}
YEAR = periods.window("1-year", NOW)
ROLL_UP = 4  # the number of a step; those below are kinds, and those of no other step plays
RUN = 1  # an import
NOON = SLOTS_PER_DAY // 2  # the present; later plays of today would be refused
STEPS = some.lists(some.tuples(some.integers(0, 12), some.integers(0, 10_000)), max_size=12)


def delete(kind: int, subject: int) -> None:
    """Delete a track, album or artist; within a unit."""
    deletions.delete(FIND[kind](subject), now=NOW, account=None, actor="cli")


class Model:
    """The album and artists of each track, deleted or not, and its plays, kept without the product.

    It begins as `tests.support.reported_plays.world` says.
    """

    def __init__(self) -> None:
        self.albums: dict[int, int | None] = {1: 1, 2: 1, 3: None}
        self.artists: dict[int, list[int]] = {1: [1], 2: [1, 2], 3: [2]}
        self.live = {TRACK: {1, 2, 3}, ALBUM: {1, 2}, ARTIST: {1, 2}}
        self.heard: dict[int, dict[tuple[int, str], bool]] = defaultdict(dict)  # half minute, listener; imported

    def delete(self, kind: int, subject: int) -> None:
        self.live[kind].discard(subject)
        if kind == ALBUM:
            self.albums = {track: None if album == subject else album for track, album in self.albums.items()}
        if kind == ARTIST:
            self.artists = {track: [each for each in by if each != subject] for track, by in self.artists.items()}

    def merge(self, kind: int, source: int, target: int) -> int:
        """Merge, and return the number of plays that go."""
        self.live[kind].discard(source)
        if kind == ALBUM:
            self.albums = {track: target if album == source else album for track, album in self.albums.items()}
        elif kind == ARTIST:
            self.artists = {
                track: list(dict.fromkeys(target if each == source else each for each in by))
                for track, by in self.artists.items()
            }
        else:
            self.albums[target] = self.albums[source] if self.albums[target] is None else self.albums[target]
            gone = self.heard[source].keys() & self.heard[target].keys()
            self.heard[target] = self.heard[source] | self.heard[target]
            for forgotten in (self.heard, self.albums, self.artists):
                del forgotten[source]
            return len(gone)
        return 0

    def figures(self) -> dict[Any, tuple[int, int]]:
        """Return plays and listeners of all that exists, by span."""
        found = {}
        for kind, subjects in self.live.items():
            for subject in subjects:
                members = [track for track in self.albums if self._belongs(kind, subject, track)]
                plays = [play for track in members for play in self.heard[track]]
                for first, end in SPANS:
                    some_plays = [who for slot, who in plays if first <= slot // SLOTS_PER_DAY < end]
                    found[kind, subject, first, end] = len(some_plays), len(set(some_plays))
        return found

    def _belongs(self, kind: int, subject: int, track: int) -> bool:
        if kind == ARTIST:
            return subject in self.artists[track]
        return subject == (track if kind == TRACK else self.albums[track])


def figures(store: Store, model: Model) -> dict[Any, tuple[int, int]]:
    def read() -> dict[Any, tuple[int, int]]:
        counted = {}
        for kind, subject, first, end in model.figures():
            heard = play_counts.over(kind, subject, first, end)
            counted[kind, subject, first, end] = heard.plays, len(heard.listeners)
        return counted

    return store.read(read).result()


def totals(scope: Scope) -> tuple[int, int]:
    """Return the plays and listeners of a whole scope; within a unit."""
    found = DetailedTotals(history.adapt(YEAR))
    found.add_all(scopes.parts(scope, scope.ids(ARTIST)))
    return found.figures().plays_total, found.figures().listeners_total


def hear(store: Store, actor: Identity, model: Model, number: int) -> None:
    """Report some plays, most of them late; those of deleted tracks are refused."""
    chance = random.Random(number)
    played = []
    for _ in range(chance.randrange(1, 6)):
        track, day, who = (
            chance.randrange(1, 4),
            TODAY - chance.choice((0, 1, 2, 31, 40, 70)),
            f"p{chance.randrange(4)}",
        )
        played.append(ReportedPlay(track, day * DAY + number % NOON * SLOT, listener=who, duration_ms=1))
    outcome = report(store, played, actor)
    refused = {at for at, play in enumerate(played) if play.track_id not in model.live[TRACK]}
    assert {at for at, _ in outcome.refused} == refused, outcome.refused
    assert {reason for _, reason in outcome.refused} <= {tracks.UNKNOWN}
    assert outcome.accepted == len(played) - len(refused) - outcome.repeated
    for at, play in enumerate(played):
        if at not in refused:
            model.heard[play.track_id].setdefault((play.played_at // SLOT, str(play.listener)), False)


def manage(first: int) -> None:
    """Let two accounts manage the artists; within a unit."""
    second = account(reports_plays=False, email="ben@label.test").user_id
    for artist, manager in ((1, first), (2, second)):
        Artist.update(manager=manager).where(Artist.id == artist).execute()


def bring(store: Store, model: Model, number: int) -> None:
    """Import a play."""
    chance = random.Random(number)
    track, slot, who = chance.choice([*model.live[TRACK], 1]), (TODAY - 1) * SLOTS_PER_DAY + number % 3, "p1"
    if track not in model.live[TRACK]:
        return

    def record() -> None:
        counting.lock()
        (listener,) = listeners.ensure([listeners.opaque_key(who)]).values()
        ingest.record([PlayRow(slot, track, listener, ingest.WITHOUT_ID, slot * SLOT, 1, 0, RUN)])

    store.write(record).result()
    model.heard[track].setdefault((slot, who), True)


def remove(store: Store, model: Model, kind: int, number: int) -> None:
    """Delete something of this kind, if it exists and may be deleted."""
    if not model.live[kind]:
        return
    subject = sorted(model.live[kind])[number % len(model.live[kind])]
    needed = any(model.artists[track] == [subject] for track in model.live[TRACK]) if kind == ARTIST else False
    if needed:
        with pytest.raises(Conflict, match="is the only artist of"):
            store.write(partial(delete, kind, subject)).result()
        return
    store.write(partial(delete, kind, subject)).result()
    model.delete(kind, subject)


def merge(store: Store, model: Model, number: int) -> None:
    """Merge one of two tracks, albums or artists into the other, as the preview says."""
    chance = random.Random(number)
    kind = chance.choice([kind for kind in model.live if len(model.live[kind]) > 1] or [TRACK])
    if len(model.live[kind]) > 1:
        source, target = chance.sample(sorted(model.live[kind]), 2)
        noun = NOUNS[kind]
        shown = store.read(partial(merging.preview, noun, source, target)).result()
        done = store.write(partial(merging.merge, noun, source, target, now=NOW)).result()
        assert (done, done.repeated_plays) == (shown, model.merge(kind, source, target))


def undo(store: Store, model: Model, _: int) -> None:
    """Withdraw the plays of the import."""
    days = sorted({slot // SLOTS_PER_DAY for plays in model.heard.values() for (slot, _), own in plays.items() if own})
    store.write(lambda: withdrawal.withdraw(Selection("import_id = ?", (RUN,)), days)).result()
    model.heard |= {
        track: {play: own for play, own in plays.items() if not own} for track, plays in model.heard.items()
    }


def move(store: Store, model: Model, number: int) -> None:
    """Give a track other artists, another album or another length."""
    if not model.live[TRACK]:
        return
    chance = random.Random(number)
    track = chance.choice(sorted(model.live[TRACK]))
    changes: dict[str, Any] = {"duration": chance.randrange(1, 4)}
    if chance.random() < 0.7 and model.live[ARTIST]:
        changes["artists"] = chance.sample(sorted(model.live[ARTIST]), chance.randrange(1, len(model.live[ARTIST]) + 1))
        model.artists[track] = changes["artists"]
    if chance.random() < 0.7:
        changes["album_id"] = model.albums[track] = chance.choice([None, *model.live[ALBUM]])
    store.write(lambda: edits.edit_track(tracks.get(track), changes, now=NOW)).result()


STEPS_OF = {5: move, 6: move, 7: bring, 10: merge, 11: merge, 12: undo}


@pytest.mark.slow
@given(steps=STEPS)
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_deleted_edited_and_merged_figures_equal_a_recount(
    new_database: Callable[[], str], steps: list[tuple[int, int]]
) -> None:
    with opening.connect(new_database()) as store:
        model = Model()
        store.write(world).result()
        store.write(lambda: Album.create(name="Album", created_at=NOW)).result()
        actor = store.write(lambda: account(reports_plays=True)).result()
        store.write(partial(manage, actor.user_id)).result()
        for kind, number in ((0, 1), (0, 2), (0, 3), *steps):
            if kind in {TRACK, ALBUM, ARTIST}:
                remove(store, model, kind, number)
            elif kind == ROLL_UP:
                store.write(partial(blocks.roll_up, number % 9)).result()
            elif kind in STEPS_OF:
                STEPS_OF[kind](store, model, number)
            else:
                hear(store, actor, model, number)
            assert figures(store, model) == model.figures()
        require_sound(store)
        heard = [who for plays in model.heard.values() for _, who in plays]
        assert store.read(partial(totals, Scope())).result() == (len(heard), len(set(heard)))
        for kind, subjects in model.live.items():
            for subject in subjects:
                explained = store.read(partial(explain.build, Subject(kind, subject), YEAR, NOW)).result()
                assert explained.differences == []


@pytest.mark.slow
def test_a_deleted_track_takes_all_that_is_about_it_along(store: Store) -> None:
    store.write(world).result()
    fan = store.write(lambda: account(reports_plays=True)).result()
    store.write(lambda: Artist.update(manager=fan.user_id).execute()).result()
    report(store, [ReportedPlay(track, NOW - DAY, listener="ann") for track in (2, 3)], fan)

    def use() -> None:
        for track in (2, 3):
            likes.add(likes.LIKE, track, now=NOW, actor=fan)
        reply: int | None = None
        for _ in range(1_100):  # more than the levels of SQLite's cascades
            reply = comments.create(2, "More!", parent_id=reply, now=NOW, actor=fan).id
        playlist = Playlist.create(owner=fan.user_id, name="Rags", created_at=NOW).id
        for track in (2, 3, 2):
            PlaylistTrack.create(playlist=playlist, track=track, added_at=NOW)

    store.write(use).result()
    store.write(partial(delete, TRACK, 2)).result()

    def left() -> list[object]:
        return [
            Comment.select().count(),
            [row.track for row in PlaylistTrack.select()],
            [row.track for row in TrackLike.select()],
            engagement.by_subject(ARTIST, [1, 2], YEAR).likes,
            engagement.by_subject(ALBUM, [1], YEAR).likes,
            TRACKS.find("track", 9),
        ]

    assert store.read(left).result() == [0, [3], [3], {1: 0, 2: 1}, {1: 0}, [1, 3]]
    with pytest.raises(NotFound):
        store.read(partial(tracks.get, 2)).result()
    require_sound(store)
    assert store.read(partial(totals, Scope())).result() == (2, 1)
    assert store.read(partial(totals, Scope(manager=fan.user_id))).result() == (2, 1)
    (event,) = store.read(lambda: security_events.find(limit=1)).result()
    assert (event.kind, event.actor, event.reason) == ("track.deleted", "cli", "track 2 (Track)")


def test_plays_of_a_deleted_track_can_be_withdrawn(store: Store) -> None:
    store.write(world).result()
    fan = store.write(lambda: account(reports_plays=True)).result()
    report(store, [ReportedPlay(2, NOW - day * DAY, listener="ann") for day in (0, 1, 40)], fan)
    store.write(partial(delete, TRACK, 2)).result()
    days = [TODAY - day for day in (40, 1, 0)]
    store.write(lambda: withdrawal.withdraw(Selection("reporter = ?", (fan.user_id,)), days)).result()
    assert store.read(partial(play_counts.all_time, ARTIST, 1)).result().plays == 0
    require_sound(store)


def test_a_track_without_plays_leaves_nothing(store: Store) -> None:
    store.write(world).result()
    store.write(partial(delete, TRACK, 2)).result()
    assert store.read(lambda: DeletedTrack.select().count()).result() == 0


def test_the_first_artist_of_an_album_cannot_be_deleted_but_further_ones_can(store: Store) -> None:
    store.write(world).result()

    def credit() -> None:
        Artist.create(name="Cleo", created_at=NOW)
        for artist, position in ((3, 4), (2, 6)):  # an import may leave gaps
            AlbumArtist.create(album=1, artist=artist, position=position)
        edits.edit_track(tracks.get(3), {"artists": [1]}, now=NOW)

    store.write(credit).result()
    with pytest.raises(Conflict, match="Cleo is the first artist of 1 album"):
        store.write(partial(delete, ARTIST, 3)).result()
    store.write(partial(delete, ARTIST, 2)).result()
    assert store.read(lambda: [row.artist for row in AlbumArtist.select()]).result() == [3]
    store.write(partial(delete, ALBUM, 1)).result()
    assert store.read(lambda: [row.album for row in Track.select()]).result() == [None] * 3
    store.write(partial(delete, ARTIST, 3)).result()
    require_sound(store)


@pytest.mark.only_on("postgres")
def test_a_change_about_a_track_that_is_deleted_meanwhile_finds_no_track(store: Store) -> None:
    store.write(world).result()
    fan = store.write(lambda: account(reports_plays=True)).result()
    found: list[int] = []

    def comment() -> None:
        found.append(tracks.require(3))
        store.write(partial(delete, TRACK, 3)).result()
        comments.create(3, "More!", now=NOW, actor=fan)

    with pytest.raises(NotFound, match="There is no such track"):
        store.write(comment).result()
    assert found == [3]


@pytest.mark.parametrize("kind", FIND)
def test_a_row_that_is_deleted_after_it_was_read_can_be_neither_changed_nor_deleted(store: Store, kind: int) -> None:
    store.write(world).result()
    row: Any = store.write(partial(FIND[kind], {TRACK: 3, ALBUM: 1, ARTIST: 1}[kind])).result()
    if kind == ARTIST:
        store.write(partial(delete, TRACK, 1)).result()
    store.write(partial(deletions.delete, row, now=NOW, account=None, actor="cli")).result()
    logged = store.read(lambda: len(security_events.find(limit=9))).result()

    with pytest.raises(NotFound):
        store.write(partial(edits.edit, row, {"name": "Rags"}, now=NOW)).result()
    with pytest.raises(NotFound):
        store.write(partial(deletions.delete, row, now=NOW, account=None, actor="cli")).result()
    assert store.read(lambda: len(security_events.find(limit=9))).result() == logged


def test_a_track_whose_album_is_deleted_after_it_was_read_can_be_changed(store: Store) -> None:
    store.write(world).result()
    track = store.write(partial(tracks.get, 1)).result()
    store.write(partial(delete, ALBUM, 1)).result()

    edited = store.write(partial(edits.edit_track, track, {"name": "Rags"}, now=NOW)).result()

    assert (edited.name, edited.album_id) == ("Rags", None)


@pytest.mark.only_on("postgres")
def test_who_hands_over_an_artist_deletes_no_track_of_it_after_that(store: Store, fans: list[Identity]) -> None:
    former, new = (fan.user_id for fan in fans)
    store.write(lambda: Artist.update(manager=former).execute() and None).result()

    def hand_over() -> None:
        counting.lock()
        Artist.update(manager=new).execute()

    def delete() -> None:
        deletions.delete(tracks.get(1), now=NOW, account=former, actor="api")

    with pytest.raises(Forbidden):
        require_begun_waits(store, hand_over, lambda: store.write(delete))
    assert store.read(partial(tracks.get, 1)).result().id == 1
