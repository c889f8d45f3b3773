"""Random interleavings of writes and reads over two servers and the command line never show a stale answer."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from musicsvc.clock import MovableClock
from musicsvc.store import opening
from musicsvc.store.playlists import playlists
from tests.conftest import NOW
from tests.support.serving import Client, person, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.engine.store import Store

SERVERS = st.integers(0, 1)
ANY = st.integers(0, 1000)
NAMES = st.sampled_from(["Dawn", "Noon", "Dusk"])


class Interleavings(RuleBasedStateMachine):
    """Playlists of one account, changed and read through two servers with caches, and changed by a third process."""

    new_database: Callable[..., str]

    def __init__(self) -> None:
        super().__init__()
        self.expected: dict[int, str] = {}
        self.closing, self.serving, self.loop = ExitStack(), AsyncExitStack(), asyncio.new_event_loop()
        url, clock = self.new_database(), MovableClock(NOW, speed=0)
        stores = [self.closing.enter_context(opening.connect(url)) for _ in range(3)]
        self.command_line: Store = stores[2]
        token = person(self.command_line, clock, "ann@label.test")[1]
        self.clients: list[Client] = [
            self.run(self.serving.enter_async_context(running(store, clock))).holding(token) for store in stores[:2]
        ]

    def run(self, request: Any) -> Any:
        return self.loop.run_until_complete(request)

    def chosen(self, number: int) -> int | None:
        return sorted(self.expected)[number % len(self.expected)] if self.expected else None

    @rule(server=SERVERS, name=NAMES)
    def create(self, server: int, name: str) -> None:
        answer = self.run(self.clients[server].post("playlists", {"name": name}))
        self.expected[answer.json["playlist"]["id"]] = name

    @rule(server=SERVERS, number=ANY, name=NAMES)
    def rename(self, server: int, number: int, name: str) -> None:
        if (playlist := self.chosen(number)) is not None:
            assert self.run(self.clients[server].put(f"playlists/{playlist}", {"name": name})).status == 200
            self.expected[playlist] = name

    @rule(number=ANY, name=NAMES)
    def rename_from_the_command_line(self, number: int, name: str) -> None:
        if (playlist := self.chosen(number)) is not None:
            self.command_line.write(lambda: playlists.replace(playlist, {"name": name})).result()
            self.expected[playlist] = name

    @rule(server=SERVERS, number=ANY)
    def delete(self, server: int, number: int) -> None:
        if (playlist := self.chosen(number)) is not None:
            assert self.run(self.clients[server].delete(f"playlists/{playlist}")).status == 200
            del self.expected[playlist]
            assert self.run(self.clients[1 - server].get(f"playlists/{playlist}")).status == 404

    @rule(server=SERVERS, number=ANY)
    def read(self, server: int, number: int) -> None:
        if (playlist := self.chosen(number)) is not None:
            answer = self.run(self.clients[server].get(f"playlists/{playlist}"))
            assert answer.json["playlist"]["name"] == self.expected[playlist]

    @invariant()
    def lists_are_current(self) -> None:
        for client in self.clients:
            rows = self.run(client.get("playlists?perPage=100")).json["pagination"]["data"]
            assert {row["id"]: row["name"] for row in rows} == self.expected

    def teardown(self) -> None:
        self.run(self.serving.aclose())
        self.closing.close()
        self.loop.close()


def test_no_interleaving_shows_a_stale_answer(new_database: Callable[..., str], slow: bool) -> None:
    examples, steps = (100, 100) if slow else (6, 30)
    Interleavings.new_database = staticmethod(new_database)
    length = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    run_state_machine_as_test(Interleavings, settings=length)
