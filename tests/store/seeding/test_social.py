"""The fixtures: playlists, follows, likes and conversations."""

from typing import Any

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.store.engine.store import Store
from musicsvc.store.models import (
    Collection,
    CollectionTrack,
    Conversation,
    Device,
    Follow,
    Message,
    NotificationChoice,
    Playlist,
    PlaylistInvite,
    PlaylistTrack,
    Track,
    TrackLike,
    TrackRepost,
    User,
)
from musicsvc.store.playlists.invites import LIFETIME
from musicsvc.store.seeding import fixtures
from musicsvc.store.seeding.world import FixtureSummary

pytestmark = pytest.mark.usefixtures("world")


def names(store: Store) -> dict[int, str]:
    return store.read(lambda: dict(User.select(User.id, User.display_name).tuples().iterator())).result()


def test_playlists_have_the_ids_that_examples_speak_of_one_none_and_another_a_track_twice(store: Store) -> None:
    rows: list[Any] = store.read(lambda: list(Playlist.select().order_by(Playlist.id))).result()
    assert [row.id for row in rows] == list(range(1, 8))
    assert [row.name for row in rows[:5]] == ["Mornings", "Evenings", "Rags for a rainy day", "Liederabend", "Not yet"]
    assert {(row.public, row.collaborative) for row in rows} == {
        (public, shared) for public in (True, False) for shared in (True, False)
    }
    assert max(len(row.name) for row in rows) == 250
    entries: list[Any] = store.read(lambda: list(PlaylistTrack.select().order_by(PlaylistTrack.id))).result()
    tracks = {number: [each.track for each in entries if each.playlist == number] for number in range(1, 8)}
    assert tracks[5] == []
    assert (tracks[1][0], len(tracks[1]), len(set(tracks[1]))) == (tracks[1][-1], 4, 3)
    assert len({each.added_by for each in entries if each.playlist == 3}) == 2


def test_collections_have_their_tracks_and_devices_their_names_and_times(store: Store, clock: MovableClock) -> None:
    rows: list[Any] = store.read(lambda: list(Collection.select())).result()
    descriptions = {row.name: row.description for row in rows}
    assert (descriptions["Studies"], descriptions["Some day"]) == ("To practise, hands apart.", None)
    tracks = Collection.select(Collection.name, Track.name).join(CollectionTrack).join(Track)
    held: list[Any] = store.read(lambda: list(tracks.order_by(CollectionTrack.position).tuples().iterator())).result()
    assert [name for of, name in held if of == "Studies"][1] == "Praeludium C-Dur"
    assert [len([of for of, _ in held if of == name]) for name in ("Studies", "Some day", "花と香り")] == [3, 0, 2]
    devices: list[Any] = store.read(lambda: list(Device.select().order_by(Device.id))).result()
    assert [(row.device_name, clock.now() - row.created_at) for row in devices] == [
        *(("Phone on the piano", 50 * DAY), (None, 9 * DAY), ("Zoë’s", 30 * DAY))
    ]


def test_invitations_are_in_every_state_and_live_seven_days(store: Store, clock: MovableClock) -> None:
    invitations: list[Any] = store.read(lambda: list(PlaylistInvite.select())).result()
    assert all(each.expires_at - each.created_at == LIFETIME for each in invitations)
    assert all((each.answered_at is None) == (each.state == "pending") for each in invitations)
    assert all(each.created_at <= each.answered_at < each.expires_at for each in invitations if each.answered_at)
    states = {(each.state, each.expires_at <= clock.now()) for each in invitations}
    assert states == {("accepted", True), ("declined", True), ("pending", True), ("pending", False)}


def test_follows_go_both_ways_and_the_later_are_the_newer(store: Store) -> None:
    rows: list[Any] = store.read(lambda: list(Follow.select().order_by(Follow.id))).result()
    pairs = {(row.follower, row.followed) for row in rows}
    assert any((followed, follower) in pairs for follower, followed in pairs)
    assert [row.created_at for row in rows] == sorted(row.created_at for row in rows)
    assert {name for key, name in names(store).items() if key not in {row.follower for row in rows}} == {"Admin"}


def test_counts_on_the_tracks_are_those_of_the_likes_and_reposts(store: Store) -> None:
    def look() -> None:
        for track in Track.select():
            assert track.likes_count == TrackLike.select().where(TrackLike.track == track.id).count()
            assert track.reposts_count == TrackRepost.select().where(TrackRepost.track == track.id).count()
        assert Track.get_by_id(1).likes_count == 4

    store.read(look).result()


def test_a_conversation_knows_its_newest_message_and_one_has_none(store: Store) -> None:
    talks: list[Any] = store.read(lambda: list(Conversation.select())).result()
    messages: list[Any] = store.read(lambda: list(Message.select().order_by(Message.id))).result()
    assert [row.created_at for row in messages[:4]] == sorted(row.created_at for row in messages[:4])
    for talk in talks:
        own = [row.created_at for row in messages if row.conversation == talk.id]
        assert talk.last_at == max([talk.created_at, *own])
    assert {talk.id for talk in talks} - {row.conversation for row in messages} == {3}


def test_channels_are_on_unless_told_otherwise(store: Store) -> None:
    rows: list[Any] = store.read(lambda: list(NotificationChoice.select())).result()
    assert {(row.notif_id, row.email, row.in_app, row.mobile) for row in rows} == {
        ("new_follower", False, True, True),
        ("new_comment", True, True, True),
        ("weekly_report", True, False, False),
        ("new_message", False, False, False),
    }


def test_what_is_gone_is_made_again_and_what_was_changed_stays(store: Store, clock: MovableClock) -> None:
    def change() -> None:
        Playlist.delete().where(Playlist.id == 5).execute()
        PlaylistTrack.delete().where(PlaylistTrack.playlist == 1).execute()
        Playlist.update(name="Mine").where(Playlist.id == 3).execute()
        Conversation.delete().where(Conversation.id == 4).execute()
        NotificationChoice.update(mobile=True).execute()

    store.write(change).result()
    again = store.write(lambda: fixtures.load(now=clock.now() + DAY)).result()
    assert again == FixtureSummary(playlists=1, conversations=1, messages=1)
    assert store.read(lambda: Playlist.get_by_id(3).name).result() == "Mine"
    assert store.read(PlaylistTrack.select().where(PlaylistTrack.playlist == 1).count).result() == 0


def test_one_that_is_gone_is_made_again_beside_similar_ones(store: Store, clock: MovableClock) -> None:
    """A row of the same account elsewhere, or of another account at the same place, does not replace it."""

    def change() -> None:
        for kind, place in ((Follow, "followed"), (TrackLike, "track"), (TrackRepost, "track")):
            by = "follower" if kind is Follow else "user"
            rows = list(kind.select(getattr(kind, by), getattr(kind, place)).tuples().iterator())
            gone = next(row for row in rows if all(sum(each[n] == row[n] for each in rows) > 1 for n in (0, 1)))
            kind.delete().where(getattr(kind, by) == gone[0], getattr(kind, place) == gone[1]).execute()
        admin = User.get(User.display_name == "Admin").id
        Collection.update(user=admin).where(Collection.name == "Studies").execute()
        NotificationChoice.update(user=admin).where(NotificationChoice.notif_id == "new_comment").execute()

    store.write(change).result()
    again = store.write(lambda: fixtures.load(now=clock.now() + DAY)).result()
    assert again == FixtureSummary(follows=1, likes=1, reposts=1, collections=1, choices=1)
