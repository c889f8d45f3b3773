"""Concurrent HTTP clients that write until the server is gone, and the checks of their effects afterwards."""

import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from musicsvc.clock import SECOND, Clock
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import (
    Artist,
    Collection,
    CollectionTrack,
    Comment,
    Conversation,
    Follow,
    Message,
    Participant,
    Play,
    Playlist,
    PlaylistTrack,
    Track,
    TrackArtist,
    TrackLike,
    TrackTag,
)
from musicsvc.store.plays import ingest, verify
from musicsvc.store.schema import schema

JSON = dict[str, Any]
Toggled = tuple[str, int, int]
UNAVAILABLE = 503
TRACKS = list(range(1, 21))
BATCH = 15


class Account(NamedTuple):
    """The account of a caller."""

    id: int
    token: str
    artist: int


def prepare(count: int, now: int) -> list[Account]:
    """Create accounts with an artist each, tracks for lists, and a conversation of all accounts; in a writing unit."""
    conversation = Conversation.create(created_at=now, last_at=now).id
    for number in TRACKS:
        Track.create(name=f"Track {number}", duration=1, created_at=now)
    made = []
    for number in range(count):
        user = users.create(f"person{number}@label.test", now=now)
        api_access.grant(user, plays=True, now=now)
        Participant.create(conversation=conversation, user=user.id)
        artist = Artist.create(name=f"Artist {number}", manager=user.id, created_at=now).id
        made.append(Account(user.id, tokens.create(user, "test", now=now)[1], artist))
    return made


class Asking(Protocol):
    """Where a caller sends its requests."""

    def ask(self, method: str, target: str, token: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body. Raises OSError if the answer is incomplete."""

    def close(self) -> None:
        """Close the connection; the next request opens another."""


class Connection:
    """A connection that is opened on demand and can break at any time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self.fields: dict[bytes, bytes] = {}  # the headers of the last answer

    def ask(self, method: str, target: str, token: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body. Raises OSError if the answer is incomplete."""
        self._socket = self._socket or socket.create_connection(("127.0.0.1", self._port), 30)
        head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Authorization: Bearer {token}\r\n" if token else ""
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._socket.sendall((head + kind).encode() + body)
        with self._socket.makefile("rb") as answer:
            status = answer.readline().split()
            self.fields = {}
            while line := answer.readline().strip():
                name, _, value = line.partition(b": ")
                self.fields[name.lower()] = value
            length = int(self.fields.get(b"content-length", -1))
            content = answer.read(max(length, 0))
        if not status or len(content) != length:
            raise ConnectionError("the answer is incomplete")
        if self.fields.get(b"connection") == b"close":
            self.close()
        return int(status[1]), content

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@dataclass
class Effect:
    """The effect of a request: its number of rows, or none if it was not acknowledged."""

    told: str
    count: Callable[[], int]
    rows: int
    acknowledged: bool = False

    def fault(self) -> str | None:
        """Return a description of a wrong effect; call it in a unit."""
        found = self.count()
        if found == self.rows or (found == 0 and not self.acknowledged):
            return None
        return f"{self.told}: {found} of {self.rows} rows, {'' if self.acknowledged else 'not '}acknowledged"


@dataclass
class Caller:
    """A client that sends one request after another."""

    number: int
    account: Account
    run: str
    states: dict[Toggled, set[bool]]  # the possible states of a follow or a like
    patient: bool = False  # whether 503 is no fault
    pause: float = 0.0  # seconds between two requests
    effects: list[Effect] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    _playlist: int = 0
    _comment: tuple[int, str] = (0, "")

    def work(self, connection: Asking, gone: threading.Event) -> None:
        """Send requests until the server is gone."""
        for turn in itertools.count():
            if gone.wait(self.pause):
                connection.close()
                return
            step = STEPS[(turn + self.number) % len(STEPS)]
            try:
                step(self, connection, f"{self.run}/{self.number}/{turn}")
            except OSError:
                # One of two workers may be gone while the other still answers.
                connection.close()
                gone.wait(0.01)

    def send(self, connection: Asking, method: str, path: str, body: JSON | None = None) -> JSON:
        """Return the body of the answer. Raises OSError if the connection broke."""
        status, content = connection.ask(method, f"/api/v1/{path}", self.account.token, json.dumps(body or {}).encode())
        if status not in {200, 201}:
            if status != UNAVAILABLE or not self.patient:
                self.odd.append(f"{method} {path}: {status} {content!r}")
            raise OSError
        result: JSON = json.loads(content)
        return result

    @contextmanager
    def expecting(self, told: str, count: Callable[[], int], rows: int = 1) -> Iterator[None]:
        """Yield the effect of the block's request; it is acknowledged if the block ends without exception."""
        effect = Effect(told, count, rows)
        self.effects.append(effect)
        yield
        effect.acknowledged = True

    def playlist(self, connection: Asking, name: str) -> None:
        with self.expecting(f"playlist {name}", lambda: Playlist.select().where(Playlist.name == name).count()):
            answer = self.send(connection, "POST", "playlists", {"name": name})
        self._playlist = answer["playlist"]["id"]

    def fill(self, connection: Asking, name: str) -> None:
        if target := self._playlist:
            self._playlist = 0
            query = PlaylistTrack.select().where(PlaylistTrack.playlist == target)
            with self.expecting(f"filling {name}", query.count, len(TRACKS)):
                self.send(connection, "POST", f"playlists/{target}/tracks/add", {"ids": TRACKS})

    def collection(self, connection: Asking, name: str) -> None:
        query = CollectionTrack.select().join(Collection).where(Collection.name == name)
        with self.expecting(f"collection {name}", query.count, len(TRACKS)):
            self.send(connection, "POST", "collections", {"name": name, "track_ids": TRACKS})

    def comment(self, connection: Asking, name: str) -> None:
        body = {"content": name, "position": self.number}
        with self.expecting(f"comment {name}", lambda: Comment.select().where(Comment.content == name).count()):
            answer = self.send(connection, "POST", f"tracks/{1 + self.number % 3}/comments", body)
        self._comment = answer["comment"]["id"], name

    def uncomment(self, connection: Asking, name: str) -> None:
        target, content = self._comment
        if target:
            self._comment = 0, ""
            self.effects = [effect for effect in self.effects if effect.told != f"comment {content}"]
            gone = lambda: int(not Comment.select().where(Comment.content == content).exists())  # noqa: E731 - as short as its neighbours
            with self.expecting(f"uncomment {name}", gone):
                self.send(connection, "DELETE", f"comments/{target}")

    def report(self, connection: Asking, name: str) -> None:
        ids = [f"{name}.{at}" for at in range(BATCH)]
        keys = [ingest.client_key(f"account:{self.account.id}", each) for each in ids]
        query = Play.select().where(Play.client_key.in_(keys))
        now = Clock().now() // SECOND
        heard = [
            {"track_id": TRACKS[at], "played_at": now, "client_id": each, "listener": self.run}
            for at, each in enumerate(ids)
        ]
        with self.expecting(f"plays {name}", query.count, BATCH):
            self.send(connection, "POST", "plays", {"plays": heard})

    def message(self, connection: Asking, name: str) -> None:
        with self.expecting(f"message {name}", lambda: Message.select().where(Message.message_text == name).count()):
            self.send(connection, "POST", "messaging/messages", {"conversation_id": 1, "message_text": name})

    def track(self, connection: Asking, name: str) -> None:
        artist = TrackArtist.select().join(Track).where(Track.name == name)
        tags = TrackTag.select().join(Track).where(Track.name == name)
        body = {"name": name, "duration": 1, "artists": [self.account.artist], "tags": [name, "a", "b"], "genre": name}
        with self.expecting(f"track {name}", lambda: artist.count() + tags.count(), 4):
            self.send(connection, "POST", "tracks", body)

    def follow(self, connection: Asking, name: str) -> None:
        other = 1 + self.account.id % len(TRACKS) % 4
        if other != self.account.id:
            self._toggle(connection, ("users", other, self.account.id), ("follow", "unfollow"), name)

    def like(self, connection: Asking, name: str) -> None:
        self._toggle(connection, ("tracks", 1, self.account.id), ("like", "unlike"), name)

    def _toggle(self, connection: Asking, key: Toggled, verbs: tuple[str, str], name: str) -> None:
        wanted = name[-1] in "02468"
        self.states.setdefault(key, {False}).add(wanted)
        self.send(connection, "POST", f"{key[0]}/{key[1]}/{verbs[0] if wanted else verbs[1]}")
        self.states[key] = {wanted}


STEPS = (
    Caller.playlist,
    Caller.fill,
    Caller.collection,
    Caller.comment,
    Caller.report,
    Caller.uncomment,
    Caller.follow,
    Caller.message,
    Caller.track,
    Caller.like,
    Caller.comment,
)


def faults(store: Store, callers: list[Caller]) -> list[str]:
    """Return a line for each lost or half-done effect."""
    found = [line for caller in callers for line in caller.odd]
    found += store.read(
        lambda: [fault for caller in callers for each in caller.effects if (fault := each.fault())]
    ).result()
    for caller in callers:
        found += store.read(lambda caller=caller: list(_settled(caller.states))).result()  # type: ignore[misc]
    report = verify.run(store, check=True, on_progress=lambda *_: None)
    found += [f"figures differ: {difference}" for difference in report.differences]
    found += store.read(_counters).result()
    return found + store.read(schema.problems).result()


def _settled(states: dict[Toggled, set[bool]]) -> Iterator[str]:
    """Compare follows and likes with their possible states."""
    for (kind, subject, user), possible in states.items():
        there = _given(kind, subject, user)
        if there not in possible:
            yield f"{kind}/{subject} of {user} is {there}"
        possible.clear()
        possible.add(there)


def _given(kind: str, subject: int, user: int) -> bool:
    if kind == "users":
        return bool(Follow.select().where(Follow.follower == user, Follow.followed == subject).exists())
    return bool(TrackLike.select().where(TrackLike.track == subject, TrackLike.user == user).exists())


def _counters() -> list[str]:
    """Compare the counters of the tracks with the counted rows."""
    return [
        f"likes of {track.id}: {track.likes_count}"
        for track in Track.select()
        if track.likes_count != TrackLike.select().where(TrackLike.track == track.id).count()
    ]
