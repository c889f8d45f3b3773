"""Random interleavings of writes and reads over several servers and the command line never show a stale answer.

On SQLite all processes share a machine. On PostgreSQL a second machine has a server of its own, which may show what was
current within the last second.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from musicsvc.clock import MovableClock
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.playlists import playlists
from tests.conftest import NOW
from tests.support.serving import Client, person, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.engine.store import Store

HERE, ELSEWHERE = "here", "elsewhere"
PLAYLISTS, CALLER = "playlists", "caller"
SECOND = 1.0
SERVERS = st.integers(0, 2)
ANY = st.integers(0, 1000)
NAMES = st.sampled_from(["Dawn", "Noon", "Dusk"])


class State(NamedTuple):
    """The content of answers after a write: playlists by id, and the caller's name. `at`: when it was acknowledged."""

    playlists: dict[int, str]
    caller: str
    at: float = 0.0


def open_on(url: str, machine: str, folder: Path) -> Store:
    """Open a store as a process of this machine would."""
    if url.startswith("sqlite:"):
        return opening.connect(url)
    from musicsvc.store.engine.postgres.store import PostgresStore  # noqa: PLC0415 - not installed for runs on SQLite

    (folder / machine).mkdir(exist_ok=True)
    return PostgresStore(url, folder / machine)


class Interleavings(RuleBasedStateMachine):
    """Playlists of one account, changed and read through servers with caches, and changed by a further process."""

    new_database: Callable[..., str]

    def __init__(self) -> None:
        super().__init__()
        self.closing, self.serving, self.loop = ExitStack(), AsyncExitStack(), asyncio.new_event_loop()
        url, clock = self.new_database(), MovableClock(NOW, speed=0)
        folder = Path(self.closing.enter_context(tempfile.TemporaryDirectory()))
        self.machines = [HERE, HERE, HERE if url.startswith("sqlite:") else ELSEWHERE]
        stores = [self.closing.enter_context(open_on(url, machine, folder)) for machine in (*self.machines, HERE)]
        self.command_line = stores.pop()
        self.account, token = person(self.command_line, clock, "ann@label.test")
        self.clients: list[Client] = [
            self.run(self.serving.enter_async_context(running(store, clock))).holding(token) for store in stores
        ]
        caller = self.run(self.clients[0].get("users/me")).json["user"]["display_name"]
        self.states = [State({}, caller, time.monotonic())]
        self.last_write = {(machine, part): 0 for machine in (HERE, ELSEWHERE) for part in (PLAYLISTS, CALLER)}

    def run(self, request: Any) -> Any:
        return self.loop.run_until_complete(request)

    @property
    def current(self) -> dict[int, str]:
        return self.states[-1].playlists

    def chosen(self, number: int) -> int | None:
        return sorted(self.current)[number % len(self.current)] if self.current else None

    def wrote(self, machine: str, changes: dict[int, str | None], caller: str | None = None) -> None:
        """Note a write that this machine has acknowledged."""
        found = {playlist: name for playlist, name in {**self.current, **changes}.items() if name is not None}
        self.states.append(State(found, caller or self.states[-1].caller, time.monotonic()))
        self.last_write[machine, PLAYLISTS if caller is None else CALLER] = len(self.states) - 1

    def ask(self, server: int, path: str, part: str) -> tuple[Any, list[State]]:
        """Return the answer, and the states of which it may show this part."""
        began, machine = time.monotonic(), self.machines[server]
        # Each state was current until the next one was acknowledged.
        recent = [number for number, after in enumerate(self.states[1:]) if after.at > began - SECOND]
        first = max(min([*recent, len(self.states) - 1]), self.last_write[machine, part])
        return self.run(self.clients[server].get(path)), self.states[first:]

    @rule(server=SERVERS, name=NAMES)
    def create(self, server: int, name: str) -> None:
        answer = self.run(self.clients[server].post("playlists", {"name": name}))
        self.wrote(self.machines[server], {answer.json["playlist"]["id"]: name})

    @rule(server=SERVERS, number=ANY, name=NAMES)
    def rename(self, server: int, number: int, name: str) -> None:
        if (playlist := self.chosen(number)) is not None:
            assert self.run(self.clients[server].put(f"playlists/{playlist}", {"name": name})).status == 200
            self.wrote(self.machines[server], {playlist: name})

    @rule(number=ANY, name=NAMES)
    def rename_from_the_command_line(self, number: int, name: str) -> None:
        if (playlist := self.chosen(number)) is not None:
            self.command_line.write(lambda: playlists.replace(playlist, {"name": name})).result()
            self.wrote(HERE, {playlist: name})

    @rule(number=ANY)
    def rename_the_caller(self, number: int) -> None:
        def change() -> None:
            user = users.get(self.account)
            user.display_name = f"Ann {number}"
            user.save()

        self.command_line.write(change).result()
        self.wrote(HERE, {}, f"Ann {number}")

    @rule(server=SERVERS, number=ANY)
    def delete(self, server: int, number: int) -> None:
        if (playlist := self.chosen(number)) is not None:
            assert self.run(self.clients[server].delete(f"playlists/{playlist}")).status == 200
            self.wrote(self.machines[server], {playlist: None})

    @rule(server=SERVERS, number=ANY)
    def read(self, server: int, number: int) -> None:
        if (playlist := self.chosen(number)) is not None:
            answer, states = self.ask(server, f"playlists/{playlist}", PLAYLISTS)
            name = answer.json["playlist"]["name"] if answer.status == 200 else None
            assert name in {state.playlists.get(playlist) for state in states}

    @rule()
    def wait(self) -> None:
        time.sleep(0.15)

    @invariant()
    def lists_are_current(self) -> None:
        for server in range(len(self.clients)):
            answer, states = self.ask(server, "playlists?perPage=100", PLAYLISTS)
            rows = answer.json["pagination"]["data"]
            assert {row["id"]: row["name"] for row in rows} in [state.playlists for state in states]
            answer, states = self.ask(server, "users/me", CALLER)
            assert answer.json["user"]["display_name"] in {state.caller for state in states}

    def teardown(self) -> None:
        self.run(self.serving.aclose())
        self.closing.close()
        self.loop.close()


def test_no_interleaving_shows_a_stale_answer(new_database: Callable[..., str], slow: bool) -> None:
    examples, steps = (100, 100) if slow else (6, 30)
    Interleavings.new_database = staticmethod(new_database)
    length = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    run_state_machine_as_test(Interleavings, settings=length)
