"""A split gives the tracks and albums of an artist to its parts, with figures that equal a recount."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.errors import Conflict, Forbidden, Invalid, NotFound
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import album_sizes, artists, changes, import_lock, tracks
from musicsvc.store.dashboards import report_links
from musicsvc.store.editing import assignments, deletions, notices, splitting
from musicsvc.store.editing.splitting import Part, Split
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Merged, SecurityEvent, Track, TrackArtist
from musicsvc.store.plays import counting
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.periods import window
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.conftest import NOW
from tests.support import play_counts
from tests.support.bounds import Bounds
from tests.support.examples import examples
from tests.support.merges import contents, merge
from tests.support.postgres_locks import require_wait
from tests.support.reported_plays import report
from tests.support.undoing import require_sound

HOUR = 3600 * 1_000_000
BOTH, ANN = 3, 4


def add_both(manager: int | None = None) -> None:
    """Add the artists "Ann & Bob" (3), credited on tracks 3 and 4 and first on album 1, and "Ann" (4), on track 4."""
    for name in ("Ann & Bob", "Ann"):
        Artist.create(name=name, manager=manager, created_at=NOW)
    Track.create(name="Duo", duration=1, album=1, created_at=NOW)
    for track, artist, position in ((3, BOTH, 1), (4, BOTH, 0), (4, ANN, 1)):
        TrackArtist.create(track=track, artist=artist, position=position)
    for artist, position in ((BOTH, 0), (1, 1)):
        AlbumArtist.create(album=1, artist=artist, position=position)


def split(store: Store, artist: int, *into: str, **more: Any) -> Split:
    return store.write(partial(splitting.split, artist, into, now=NOW, **more)).result()


def credited() -> dict[str, list[list[str]]]:
    """Return the names of the artists of each track and album, in their order; within a unit."""
    found = {}
    for table, owner, load in ((Track, "tracks", artists.of_tracks), (Album, "albums", artists.of_albums)):
        ids = [row.id for row in table.select().order_by(table.id)]
        found[owner] = [[artist.name for artist in load(ids).get(each, ())] for each in ids]
    return found


def plays(kind: int, number: int) -> tuple[int, int]:
    heard = play_counts.all_time(kind, number)
    return heard.plays, len(heard.listeners)


def test_tracks_and_albums_get_all_parts_in_place_of_the_artist_and_plays_count_for_them(
    store: Store, fans: list[Identity]
) -> None:
    store.write(add_both).result()
    heard = [(1, "x"), (3, "x"), (3, "y"), (4, "y"), (4, "z"), (4, "z")]
    listens = [ReportedPlay(track, NOW - 50 * HOUR * n, who) for n, (track, who) in enumerate(heard)]
    assert report(store, listens, fans[0]).accepted == 6
    shown = store.read(partial(splitting.preview, BOTH, ["Bob", "Ann"])).result()
    assert shown == Split(BOTH, "Ann & Bob", [Part(None, "Bob"), Part(ANN, "Ann")], tracks=2, albums=1, plays=5)
    assert (shown.gains, [part.text for part in shown.into]) == (["2 tracks", "1 album", "5 plays"], ["Bob", "Ann (4)"])

    done = split(store, BOTH, *(part.text for part in shown.into))

    bob = done.into[0].id or 0
    assert done == shown._replace(into=[Part(bob, "Bob"), Part(ANN, "Ann")])
    assert store.read(credited).result() == {
        "tracks": [["Artist 1"], ["Artist 1", "Artist 2"], ["Artist 2", "Bob", "Ann"], ["Bob", "Ann"]],
        "albums": [["Bob", "Ann", "Artist 1"]],
    }
    counted = [(ARTIST, bob), (ARTIST, ANN), (ARTIST, 2), (ARTIST, BOTH), (ALBUM, 1), (TRACK, 4)]
    found = store.read(lambda: [plays(*each) for each in counted]).result()
    assert found == [(5, 3), (5, 3), (2, 2), (0, 0), (4, 3), (3, 2)]
    with pytest.raises(NotFound):
        store.read(partial(artists.get, BOTH)).result()
    require_sound(store)
    report(store, [ReportedPlay(4, NOW, "new")], fans[0])
    assert store.read(lambda: [plays(*each) for each in counted[:2]]).result() == [(6, 4), (6, 4)]
    require_sound(store)


# Artist 6 is split, artist 1 is never a part.
CREDITS = some.permutations(range(1, 7)).flatmap(lambda of: some.integers(1, 6).map(lambda number: of[:number]))


@given(
    credits_of=some.lists(CREDITS, min_size=6, max_size=12),
    into=some.permutations([2, 3, 4, 5]).flatmap(lambda of: some.integers(2, 4).map(lambda n: of[:n])),
    gap=some.integers(1, 3),
)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_parts_take_the_place_of_the_artist_unless_they_have_an_earlier_one(
    new_database: Callable[[], str], credits_of: list[list[int]], into: list[int], gap: int
) -> None:
    def create() -> None:
        for number in range(1, 7):
            Artist.create(name=f"Artist {number}", created_at=NOW)
        for number, of in enumerate(credits_of, 1):
            Track.create(name="Track", duration=1, created_at=NOW)
            Album.create(name="Album", created_at=NOW)
            for position, artist in enumerate(of):
                TrackArtist.create(track=number, artist=artist, position=position * gap)
                AlbumArtist.create(album=number, artist=artist, position=position * gap)

    def expected(of: list[int]) -> list[str]:
        spread = [each for artist in of for each in (into if artist == 6 else [artist])]
        return [f"Artist {each}" for each in dict.fromkeys(spread)]

    with opening.connect(new_database()) as store:
        store.write(create).result()
        split(store, 6, *map(str, into))
        wanted = [expected(of) for of in credits_of]
        assert store.read(credited).result() == {"tracks": wanted, "albums": wanted}
        require_sound(store)


def test_plays_of_deleted_tracks_count_for_the_parts(store: Store, fans: list[Identity]) -> None:
    store.write(add_both).result()
    report(store, [ReportedPlay(track, NOW, "x") for track in (1, 4)], fans[0])
    store.write(lambda: deletions.delete(tracks.get(4), now=NOW, account=None, actor="cli")).result()
    bob = split(store, BOTH, "Ann", "Bob").into[1].id
    assert bob
    assert store.read(lambda: [plays(ARTIST, each) for each in (ANN, bob, BOTH)]).result() == [(1, 1), (1, 1), (0, 0)]
    require_sound(store)


@pytest.mark.usefixtures("fans")
def test_a_name_is_that_of_the_managers_artist_whatever_its_blanks_and_hyphens(store: Store) -> None:
    def others() -> None:
        add_both()
        for name in ("Bob\u2010", "Cy\u00a0  Dee", "cy dee"):
            Artist.create(name=name, created_at=NOW)

    store.write(others).result()
    found = store.read(partial(splitting.preview, BOTH, [" Cy Dee", "Bob-", "Ann (4)"])).result()
    assert [part.id for part in found.into] == [6, 5, 4]
    store.write(lambda: Artist.create(name="Bob-", created_at=NOW)).result()
    found = store.read(partial(splitting.preview, BOTH, ["Bob\u2010", "Bob-", "New (9)"])).result()
    assert [(part.id, part.name) for part in found.into] == [(5, "Bob\u2010"), (8, "Bob-"), (None, "New (9)")]


SAME = "Ann & Bob (artist 3) cannot be a part of itself."
REFUSED: Sequence[tuple[list[str], str]] = [
    (["Ann"], "Name 2 to 50 artists, not 1."),
    ([], "Name 2 to 50 artists, not 0."),
    ([f"Part {n}" for n in range(51)], "Name 2 to 50 artists, not 51."),
    (["Ann & Bob", "Ann"], SAME),
    (["Ann", "Ann  & Bob\u200b"], SAME),
    (["Ann", "3"], SAME),
    (["Ann", "Ann & Bob (3)"], SAME),
    (["Ann", "Bob", "4"], "Ann is named twice."),
    (["Bob", "Bob\u00a0"], "Bob is named twice."),
    (["Ann", "99"], "There is no artist 99."),
    (["Ann", "99999999999999999999999"], "There is no artist 9223372036854775807."),
    (["Twin", "Ann"], "Several artists are named Twin: 5, 6. Give an id."),
]


@pytest.mark.usefixtures("fans")
def test_parts_that_are_none_are_refused_and_nothing_changes(store: Store) -> None:
    def others() -> None:
        add_both()
        for _ in range(2):
            Artist.create(name="Twin", created_at=NOW)

    store.write(others).result()
    before = store.read(contents).result()
    for into, message in REFUSED:
        for attempt in (partial(splitting.preview, BOTH, into), partial(splitting.split, BOTH, into, now=NOW)):
            with pytest.raises(Invalid) as refusal:
                store.write(attempt).result()
            assert getattr(refusal.value, "errors", None) == {"into": message}
    with pytest.raises(NotFound, match="There is no artist 99"):
        split(store, 99, "Ann", "Bob")
    assert store.read(contents).result() == before


@pytest.mark.usefixtures("fans")
def test_a_track_or_album_that_would_be_too_large_is_refused_and_nothing_changes(store: Store, bounds: Bounds) -> None:
    def crowd() -> None:
        add_both()
        for position in range(49):
            artist = Artist.create(name=f"Guest {position}", created_at=NOW)
            TrackArtist.create(track=3, artist=artist, position=position + 9)
        TrackArtist.delete().where(TrackArtist.track == 3, TrackArtist.artist == 2).execute()

    store.write(crowd).result()
    before = store.read(contents).result()
    for attempt in (partial(splitting.preview, BOTH, ["Ann", "Bob"]), partial(split, store, BOTH, "Ann", "Bob")):
        with pytest.raises(Conflict, match=r"^Track \(track 3\) would have 51 artists. A track has at most 50.$"):
            store.read(attempt).result() if attempt.func is splitting.preview else attempt()
    bounds(largest_album=store.read(lambda: album_sizes.measure([1])[1].bytes).result() + 400)
    store.write(
        lambda: TrackArtist.delete().where(TrackArtist.track == 3, TrackArtist.artist != BOTH).execute()
    ).result()
    with pytest.raises(Conflict, match=r"^Album 1: An album with its tracks takes at most"):
        split(store, BOTH, "Bob", "Cy" * 100)
    assert store.read(contents).result()[:3] == before[:3]
    split(store, BOTH, "Ann", "Guest 1")  # both are on the album or short
    require_sound(store)


def test_only_who_manages_all_or_an_administrator_splits_and_managers_learn_of_it(
    store: Store, fans: list[Identity]
) -> None:
    def assign() -> None:
        add_both(fans[0].user_id)
        Artist.update(manager=fans[1].user_id).where(Artist.id == 2).execute()
        Artist.create(name="Bob", manager=fans[1].user_id, created_at=NOW)

    store.write(assign).result()
    for artist, into, refused in ((2, ["Ann", "Bob"], 2), (BOTH, ["Ann", "2"], 2), (BOTH, ["Artist 2 (2)", "Ann"], 2)):
        for attempt in (splitting.preview, partial(splitting.split, now=NOW)):
            with pytest.raises(Forbidden, match=f"You do not manage artist {refused}."):
                store.write(partial(attempt, artist, into, caller=fans[0])).result()
    done = split(store, BOTH, "Ann", "Bob", caller=fans[0], actor="page")
    assert done.into[1].id == 6  # not the Bob of another manager
    assert store.read(lambda: artists.get(6).manager_id).result() == fans[0].user_id
    split(store, 2, "Ann (4)", "Zoe", caller=fans[0]._replace(admin=True), actor="page")
    assert store.read(lambda: artists.get(7).manager_id).result() == fans[1].user_id

    events = store.read(lambda: [*SecurityEvent.select().order_by(SecurityEvent.id)]).result()
    found = [(each.kind, each.account_id, each.actor_id, each.reason) for each in events if each.kind == "artist.split"]
    assert found[0] == (
        "artist.split",
        fans[0].user_id,
        None,
        "Ann & Bob (artist 3) into Ann (artist 4) and Bob (artist 6)",
    )
    assert {each[1:3] for each in found[1:]} == {(fans[0].user_id, None), (fans[1].user_id, fans[0].user_id)}
    (notice,) = store.read(lambda: notices.latest(fans[1].user_id, now=NOW)).result()
    assert (notice.verb, notice.about) == ("split", "Artist 2 (artist 2) into Ann (artist 4) and Zoe (artist 7)")


@pytest.mark.only_on("postgres")
def test_who_hands_over_an_artist_does_not_split_it_after_that(store: Store, fans: list[Identity]) -> None:
    artist = store.write(lambda: Artist.create(name="Ann & Bob", manager=fans[0].user_id, created_at=NOW).id).result()

    def hand_over() -> None:
        assignments.assign(artist, users.get(fans[1].user_id), now=NOW)

    attempt = partial(splitting.split, artist, ["Ann", "Bob"], caller=fans[0], now=NOW, actor="page")
    with pytest.raises(Forbidden, match=f"You do not manage artist {artist}."):
        require_wait(store, hand_over, attempt)


@pytest.mark.usefixtures("fans")
def test_the_artist_is_among_the_deleted_ones_of_the_changes(store: Store) -> None:
    store.write(add_both).result()
    merge(store, "artist", 1, BOTH)
    cursor = store.read(lambda: changes.since(None)).result().cursor
    bob = split(store, BOTH, "Ann", "Bob").into[1].id
    found = store.read(lambda: changes.since(cursor)).result().rows
    assert {(each.noun, each.id, each.change, each.into) for each in found} == {
        ("artist", BOTH, "deleted", None),
        ("artist", bob, "created", None),
        *(("track", track, "updated", None) for track in (1, 2, 3, 4)),
        ("album", 1, "updated", None),
    }


def test_share_links_of_the_artist_end_and_those_of_several_show_the_others(store: Store, fans: list[Identity]) -> None:
    manager = fans[0].user_id
    store.write(partial(add_both, manager)).result()
    week = window("7-days", NOW)

    def share(*ids: int) -> report_links.LinkRow:
        return report_links.create([Subject(ARTIST, each) for each in ids], week, user_id=manager, now=NOW)

    alone, both = [store.write(partial(share, *ids)).result() for ids in ((BOTH,), (BOTH, ANN))]
    split(store, BOTH, "Ann", "Bob")
    with pytest.raises(NotFound, match="This link does not work"):
        store.read(lambda: report_links.open(alone.id, alone.created_at, now=NOW)).result()
    shown = store.read(lambda: report_links.open(both.id, both.created_at, now=NOW)).result()
    assert shown.subjects == (Subject(ARTIST, ANN),)


@pytest.mark.usefixtures("fans")
def test_names_lead_to_the_parts_of_parts_and_to_what_these_are_merged_into(store: Store) -> None:
    store.write(add_both).result()
    merge(store, "artist", 1, BOTH)  # Artist 1
    split(store, BOTH, "Ann", "Bob", "Cy")  # 4, 5, 6
    merge(store, "artist", 6, 2)
    split(store, 5, "Bo", "2", "Bea")  # 7, 2, 8

    def led() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row in Merged.select().where(Merged.kind == ARTIST).order_by(Merged.id):
            found.setdefault(row.name, []).append(row.into)
        return found

    expected = {"Artist 1": [4, 7, 2, 8], "Ann & Bob": [4, 7, 2, 8], "Cy": [2], "Bob": [7, 2, 8]}
    assert store.read(led).result() == expected
    store.write(lambda: deletions.delete(artists.get(7), now=NOW, account=None, actor="cli")).result()
    assert store.read(led).result()["Ann & Bob"] == [4, 2, 8]


@pytest.mark.only_on("postgres")
@pytest.mark.usefixtures("fans")
def test_a_split_waits_for_imports_and_plays_and_of_two_at_once_the_second_finds_no_artist(store: Store) -> None:
    store.write(add_both).result()
    require_wait(store, import_lock.lock_imports, partial(splitting.split, BOTH, ["Ann", "Bob"], now=NOW))
    require_wait(store, counting.lock, partial(splitting.split, 1, ["Ann", "Bob"], now=NOW))

    def second() -> None:
        with pytest.raises(NotFound, match="There is no artist 2"):
            splitting.split(2, ["Ann", "Bob"], now=NOW)

    def first() -> None:
        splitting.split(2, ["Ann", "Bob"], now=NOW)

    require_wait(store, first, second)
    require_sound(store)


@pytest.mark.only_on("postgres")
@pytest.mark.usefixtures("fans")
def test_what_is_credited_or_deleted_meanwhile_is_seen(store: Store) -> None:
    store.write(add_both).result()

    def second() -> None:
        with pytest.raises(NotFound, match="There is no artist 4"):
            splitting.split(BOTH, ["4", "Bob"], now=NOW)

    def first() -> None:
        TrackArtist.delete().where(TrackArtist.artist == ANN).execute()
        Artist.delete().where(Artist.id == ANN).execute()

    require_wait(store, first, second)

    def credit() -> None:
        TrackArtist.create(track=1, artist=BOTH, position=5)

    require_wait(store, credit, partial(splitting.split, BOTH, ["Cy", "Bob"], now=NOW))
    assert store.read(credited).result()["tracks"][0] == ["Artist 1", "Cy", "Bob"]
    require_sound(store)
