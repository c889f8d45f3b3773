"""Load what `fixtures/social.toml` has: playlists, follows, likes, conversations and notification settings."""

from collections.abc import Sequence
from functools import partial

from musicsvc.clock import DAY
from musicsvc.store.accounts import follows, tokens
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engagement import likes
from musicsvc.store.messaging import messages, notifications
from musicsvc.store.models import (
    Collection,
    Device,
    Follow,
    NotificationChoice,
    Participant,
    Playlist,
    PlaylistInvite,
    TrackLike,
    TrackRepost,
)
from musicsvc.store.playlists import collections, playlists
from musicsvc.store.playlists.invites import LIFETIME
from musicsvc.store.seeding.world import PREFIX, Entries, Entry, World, columns


def load(entries: Entries, world: World) -> None:
    """Create the rows of `entries` that the database lacks, and count them in `world.created`."""
    for kind, create in (
        ("playlist", _playlist),
        ("follow", _follow),
        ("like", partial(_add_missing, TrackLike, "likes")),
        ("repost", partial(_add_missing, TrackRepost, "reposts")),
        ("collection", _collection),
        ("conversation", _conversation),
        ("device", _device),
        ("choice", _choice),
    ):
        for entry in entries.get(kind, ()):
            create(entry, world)


def _at(entry: Entry, world: World, name: str = "days_ago") -> int:
    return world.now - int(entry[name] * DAY)


def _caller(key: str, world: World) -> Identity:
    return tokens.identity_of(world.accounts[key])


def _tracks(keys: Sequence[str], world: World) -> list[int]:
    return [world.tracks[key] for key in keys]


def _playlist(entry: Entry, world: World) -> None:
    identity = {"external_id": PREFIX + entry["key"], "owner": world.accounts[entry["owner"]].id}
    if Playlist.get_or_none(**identity) is not None:
        return
    world.created["playlists"] += 1
    values = columns(entry, Playlist) | identity
    playlist_id = Playlist.create(**values, created_at=_at(entry, world)).id
    for added in entry.get("tracks", []):
        by = world.accounts[added["by"]].id
        playlists.append(playlist_id, _tracks(added["keys"], world), actor=by, now=_at(added, world))
    for invitation in entry.get("invitations", []):
        _invitation(playlist_id, invitation, world)


def _invitation(playlist_id: int, entry: Entry, world: World) -> None:
    world.created["invitations"] += 1
    sent = _at(entry, world)
    PlaylistInvite.create(
        playlist=playlist_id,
        user=world.accounts[entry["user"]].id,
        state=entry["state"],
        created_at=sent,
        expires_at=sent + LIFETIME,
        answered_at=_at(entry, world, "answered_days_ago") if "answered_days_ago" in entry else None,
    )


def _follow(entry: Entry, world: World) -> None:
    by = _caller(entry["by"], world)
    for key in entry["accounts"]:
        user_id = world.accounts[key].id
        if Follow.get_or_none(follower=by.user_id, followed=user_id) is None:
            world.created["follows"] += 1
            follows.follow(user_id, now=_at(entry, world), actor=by)


def _add_missing(kind: likes.Kind, name: str, entry: Entry, world: World) -> None:
    """Create those likes or reposts of the entry that the database lacks."""
    by = _caller(entry["by"], world)
    new = [each for each in _tracks(entry["tracks"], world) if kind.get_or_none(track=each, user=by.user_id) is None]
    for track_id in new:
        likes.add(kind, track_id, now=_at(entry, world), actor=by)
    world.created[name] += len(new)


def _collection(entry: Entry, world: World) -> None:
    by = _caller(entry["by"], world)
    if Collection.select().where(Collection.user == by.user_id, Collection.name == entry["name"]).exists():
        return
    world.created["collections"] += 1
    track_ids = _tracks(entry.get("tracks", []), world)
    collections.create(entry["name"], entry.get("description"), track_ids, now=_at(entry, world), actor=by)


def _conversation(entry: Entry, world: World) -> None:
    people = {world.accounts[key].id for key in entry["between"]}
    if _have_conversation(people):
        return
    world.created["conversations"] += 1
    conversation = messages.create(people, now=_at(entry, world), actor=_caller(entry["between"][0], world))
    for message in entry.get("messages", []):
        world.created["messages"] += 1
        messages.send(conversation.id, message["text"], now=_at(message, world), actor=_caller(message["by"], world))


def _have_conversation(people: set[int]) -> bool:
    """Return True if there is a conversation with exactly these participants, given by account id."""
    theirs = Participant.select(Participant.conversation).where(Participant.user.in_(people))
    found: dict[int, set[int]] = {}
    query = Participant.select(Participant.conversation, Participant.user).where(Participant.conversation.in_(theirs))
    for conversation_id, user_id in query.tuples().iterator():
        found.setdefault(conversation_id, set()).add(user_id)
    return people in found.values()


def _device(entry: Entry, world: World) -> None:
    if Device.get_or_none(token=entry["token"]) is None:
        world.created["devices"] += 1
        by = _caller(entry["by"], world)
        name = entry.get("device_name")
        notifications.register_device(entry["token"], entry["platform"], name, now=_at(entry, world), actor=by)


def _choice(entry: Entry, world: World) -> None:
    user_id = world.accounts[entry["by"]].id
    if NotificationChoice.get_or_none(user=user_id, notif_id=entry["notif_id"]) is None:
        world.created["choices"] += 1
        notifications.update_choices(user_id, [(entry["notif_id"], entry["channels"])])
