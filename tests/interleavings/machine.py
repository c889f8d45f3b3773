"""A state machine that writes through several servers and other processes, and compares all answers with a model.

Each write runs beside reads of what it changes, and is followed by such reads. The processes of a machine must show it
as soon as it is acknowledged, those of other machines within a second.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from musicsvc.clock import SECOND, Clock
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.accounts import tokens, users
from musicsvc.store.playlists import playlists
from tests.interleavings.actors import Caller, Service
from tests.interleavings.model import (
    ANOTHER_MACHINE,
    COUNTER,
    ELSEWHERE,
    Change,
    Guest,
    History,
    View,
    at,
    list_of_playlists,
    name_of,
    tracks_of,
)
from tests.support.listening_world import catalog
from tests.support.serving import Answer, person

NAMES = ["Dawn", "Noon", "Dusk"]
NEXT_STATUS = {"pending": "processing", "processing": "failed", "failed": "pending"}
HALF_MINUTE = 30  # in which plays of one listener count once
# One rule chooses among these: of many rules, hypothesis would use only a few in each example.
ACTIONS = (
    "rename",
    "rename_through_two_servers",
    "rename_in_another_process",
    "add_track",
    "remove_track",
    "play",
    "like_or_unlike",
    "rename_the_caller",
    "delete_the_token_of_the_guest",
    "begin_command",
    "finish_command",
    "create",
    "delete",
    "look_at_all",
    "wait",
)


class Interleavings(RuleBasedStateMachine):
    """Playlists, plays and likes of one caller, and a guest whose access ends and begins again."""

    enter: Callable[[ExitStack], Service]
    commands = 100  # at most, in one example

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.service = self.enter(self.closing)
        self.running: tuple[Callable[[], bool], Change, View] | None = None
        store, now = self.service.store, Clock().now()
        made = store.write(lambda: catalog(now)).result()
        self.caller = Caller(self.service, made.token)
        self.account, self.track, self.artist, self.tracks = made.manager, made.tracks[0], made.artists[0], made.tracks
        self.began = now // SECOND
        self.email = f"guest{self.account.user_id}@label.test"
        guest, self.guest_token = person(store, Clock(), self.email)
        found = store.read(lambda: tokens.find_by_value(self.guest_token)).result()
        assert found is not None
        self.guest_token_id = found.id
        self.spare_token = store.write(lambda: tokens.create(users.get(guest), "spare", now=now)[1]).result()
        self.make_views()
        self.create(0, 0)
        self.look_at_all()

    def make_views(self) -> None:
        track = f"tracks/{self.track}"
        self.names, self.contents = History({}), History({})
        self.list = list_of_playlists(self.names)
        self.me = View("users/me", History(self.account.display_name), at("user", "display_name"))
        self.plays = View(f"{INSIGHTS}/{track}", History(0), at("data", "plays", "total"))
        self.likes = View(track, History(0, COUNTER), at("track", "likes_count"))
        self.verified = View(f"artists/{self.artist}", History(value=False), at("artist", "verified"))
        self.fingerprint = View(f"{track}/fingerprint/status", History("pending"), at("fingerprint_status"))
        self.guest = View("users/me", History(Guest()), lambda answer: answer.status, Guest.status, self.guest_token)

    def chosen(self, number: int) -> int:
        """Return one of the playlists; there is always one."""
        found: list[int] = sorted(self.names.value)
        return found[number % len(found)]

    def views_of(self, playlist: int) -> Sequence[View]:
        return self.list, name_of(playlist, self.names), tracks_of(playlist, self.contents)

    def possible_commands(self) -> Sequence[tuple[Sequence[object], View, object]]:
        """Return commands with the view that each changes, and the value afterwards."""
        guest: Guest = self.guest.history.value
        verified, next_status = self.verified.history.value, NEXT_STATUS[self.fingerprint.history.value]
        token, user, access = (not flag for flag in guest)
        return (
            (
                ("token", "revoke" if token else "reinstate", self.guest_token_id),
                self.guest,
                guest._replace(revoked=token),
            ),
            (("user", "suspend" if user else "reinstate", self.email), self.guest, guest._replace(suspended=user)),
            (("access", "grant" if access else "revoke", self.email), self.guest, guest._replace(access=access)),
            (("artist", "verify", self.artist, *(["--undo"] if verified else [])), self.verified, not verified),
            (("fingerprint", "set", self.track, next_status), self.fingerprint, next_status),
        )

    # What a step may do. `server` and `number` choose the server, the playlist, the name, the track.

    def look_at_all(self, _server: int = 0, number: int = 0) -> None:
        every = (self.list, self.me, self.plays, self.likes, self.verified, self.fingerprint, self.guest)
        self.caller.look(*every, *self.views_of(self.chosen(number)))

    def wait(self, _server: int, _number: int) -> None:
        time.sleep(0.15)

    def create(self, server: int, number: int) -> None:
        def changes(answer: Answer) -> Sequence[tuple[History, object]]:
            new = answer.json["playlist"]["id"]
            return (self.names, {**self.names.value, new: name}), (self.contents, {**self.contents.value, new: []})

        name = NAMES[number % len(NAMES)]
        self.caller.write(server, ("POST", "playlists", {"name": name}), [self.list], changes)

    def delete(self, server: int, number: int) -> None:
        if len(self.names.value) == 1:
            return
        target = self.chosen(number)
        left = [
            (each, {key: each.value[key] for key in each.value if key != target})
            for each in (self.names, self.contents)
        ]
        self.caller.write(server, ("DELETE", f"playlists/{target}"), self.views_of(target), lambda _: left)

    def rename(self, server: int, number: int) -> None:
        target, name = self.chosen(number), NAMES[number % len(NAMES)]
        request, after = ("PUT", f"playlists/{target}", {"name": name}), {**self.names.value, target: name}
        self.caller.write(server, request, self.views_of(target), lambda _: [(self.names, after)])

    def rename_through_two_servers(self, server: int, number: int) -> None:
        """Rename a playlist twice at once. The database knows which name was the last."""
        target = self.chosen(number)
        views, servers = self.views_of(target), {"Rain": server, "Snow": server + 1}
        requests = [("PUT", f"playlists/{target}", {"name": name}) for name in servers]
        looks = self.caller.write_at_once(list(servers.values()), requests, views)
        last = self.service.store.read(lambda: playlists.get(target).name).result()
        for name in sorted(servers, key=last.__eq__):
            self.names.add({**self.names.value, target: name}, self.caller.machine(servers[name]))
        for look in looks:
            look.verify()
        self.caller.look(*views)

    def rename_in_another_process(self, _server: int, number: int) -> None:
        target, name = self.chosen(number), NAMES[number % len(NAMES)]
        self.service.store.write(lambda: playlists.replace(target, {"name": name})).result()
        self.names.add({**self.names.value, target: name})
        self.caller.look(*self.views_of(target))

    def add_track(self, server: int, number: int) -> None:
        target, track = self.chosen(number), self.tracks[number % len(self.tracks)]
        self.write_tracks(server, target, "add", track, [*self.contents.value[target], track])

    def remove_track(self, server: int, number: int) -> None:
        target, track = self.chosen(number), self.tracks[number % len(self.tracks)]
        left = [each for each in self.contents.value[target] if each != track]
        self.write_tracks(server, target, "remove", track, left)

    def write_tracks(self, server: int, target: int, verb: str, track: int, after: list[int]) -> None:
        request = "POST", f"playlists/{target}/tracks/{verb}", {"ids": [track]}
        changed = {**self.contents.value, target: after}
        self.caller.write(server, request, self.views_of(target), lambda _: [(self.contents, changed)])

    def play(self, server: int, _number: int) -> None:
        history = self.plays.history
        count = history.value + 1
        play = {"track_id": self.track, "played_at": self.began - HALF_MINUTE * count}
        self.caller.write(server, ("POST", "plays", {"plays": [play]}), [self.plays], lambda _: [(history, count)])

    def like_or_unlike(self, server: int, _number: int) -> None:
        history = self.likes.history
        liked = history.value
        request = "POST", f"tracks/{self.track}/{'unlike' if liked else 'like'}"
        self.caller.write(server, request, [self.likes], lambda _: [(history, 1 - liked)])

    def rename_the_caller(self, _server: int, number: int) -> None:
        name = f"Ann {number}"
        self.service.store.write(lambda: users.set_display_name(users.get(self.account.user_id), name)).result()
        self.me.history.add(name)
        self.caller.look(self.me)

    def delete_the_token_of_the_guest(self, server: int, _number: int) -> None:
        if not self.running and self.guest.history.value == Guest():
            request = "DELETE", f"access-tokens/{self.guest_token_id}"
            revoked = [(self.guest.history, Guest(revoked=True))]
            self.caller.write(server, request, [self.guest], lambda _: revoked, self.spare_token)

    def begin_command(self, _server: int, number: int) -> None:
        if not self.running and self.commands:
            possible = self.possible_commands()
            line, view, value = possible[number % len(possible)]
            self.commands -= 1
            self.running = self.service.command(list(map(str, line))), view.history.begin(value), view

    def finish_command(self, _server: int = 0, _number: int = 0) -> None:
        if self.running:
            is_done, change, view = self.running
            while not is_done():
                self.caller.look(view)
                time.sleep(0.01)
            change.acknowledge()
            self.running = None
            self.caller.look(view)

    @rule(action=st.sampled_from(ACTIONS), server=st.integers(0, 5), number=st.integers(0, 1000))
    def act(self, action: str, server: int, number: int) -> None:
        getattr(self, action)(server, number)

    def teardown(self) -> None:
        with self.closing:
            if self.running:
                self.finish_command()
            if ELSEWHERE in self.service.machines:
                time.sleep(ANOTHER_MACHINE)
            self.look_at_all()
