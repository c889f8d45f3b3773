"""Random interleavings over real processes: two workers, commands and, on PostgreSQL, a server on another machine."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import aiohttp
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from musicsvc.store import opening
from tests.interleavings.actors import Service
from tests.interleavings.machine import Interleavings
from tests.interleavings.model import ELSEWHERE, HERE
from tests.support import preloaded
from tests.support.program import PATIENCE, Program, held, until
from tests.support.serving import Client

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")

SETTINGS = {
    "SERVER__KEEPALIVE_TIMEOUT": "3600",
    "LIMITS__LOCAL": "true",
    "LIMITS__TOKEN": "900000000/day",
    "LIMITS__ADDRESS": "900000000/day",
    "ABUSE__PROBES": "1000000",
}


HELD_SECONDS = 2.0


class Connections:
    """Clients with one connection each, which is never opened again."""

    def __init__(self, loop: asyncio.AbstractEventLoop, closing: ExitStack) -> None:
        self.loop = loop
        self.clients: list[Client] = []
        self.opened = 0
        self._closing = closing

    def add(self, root: str, patience: float = PATIENCE) -> bool:
        """Open a connection to any process that accepts it. Return False if none answers in time."""

        async def opened() -> aiohttp.ClientSession:
            tracing = aiohttp.TraceConfig()
            tracing.on_connection_create_end.append(self._count)
            connector = aiohttp.TCPConnector(limit=1, keepalive_timeout=3600)
            return aiohttp.ClientSession(connector=connector, trace_configs=[tracing])

        session = self.loop.run_until_complete(opened())
        client = Client(session, root)
        try:
            self.loop.run_until_complete(asyncio.wait_for(client.get("/healthz"), patience))
        except TimeoutError:
            self.loop.run_until_complete(session.close())
            return False
        self._closing.callback(lambda: self.loop.run_until_complete(session.close()))
        self.clients.append(client)
        return True

    def add_each(self, program: Program) -> None:
        """Open a connection to each worker."""
        root = program.root
        until(lambda: len(program.workers) == 2)

        def add_alone(worker: int) -> bool:
            # A worker that still starts may wait for a lock of the one that is held, so this is tried again.
            with held(*(set(program.workers) - {worker})):
                return self.add(root, HELD_SECONDS)

        for worker in program.workers:
            until(lambda: add_alone(worker))  # noqa: B023 - called at once

    async def _count(self, *_: object) -> None:
        self.opened += 1


def begin(line: Sequence[str]) -> Callable[[], bool]:
    """Begin a command."""
    told = TemporaryFile()  # noqa: SIM115 - closed when the command is done
    process = preloaded.start(line, told.fileno(), told.fileno())

    def is_done() -> bool:
        if process.poll() is None:
            return False
        with told:
            told.seek(0)
            assert process.returncode == 0, told.read()
        return True

    return is_done


@contextmanager
def serving(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Service, Connections]]:
    """Start two workers and, on PostgreSQL, a server on another machine."""
    for name, value in {**SETTINGS, "DATABASE_URL": url, "DATA_DIR": str(folder / HERE)}.items():
        monkeypatch.setenv(f"MUSICSVC_{name}", value)
    machines = [HERE, HERE]
    with ExitStack() as closing:
        loop = asyncio.new_event_loop()
        closing.callback(loop.close)
        connections = Connections(loop, closing)
        programs = [closing.enter_context(Program(folder, "serve", "--port", "0", "--workers", "2"))]
        if not url.startswith("sqlite:"):
            machines.append(ELSEWHERE)
            (folder / ELSEWHERE).mkdir()
            other = partial(preloaded.fresh, module="tests.interleavings.other_machine")
            with monkeypatch.context() as there:
                there.setenv("MUSICSVC_DATA_DIR", str(folder / ELSEWHERE))
                arguments = str(folder / ELSEWHERE), "serve", "--port", "0"
                programs.append(closing.enter_context(Program(folder / ELSEWHERE, *arguments, start=other)))
        connections.add_each(programs[0])
        for program in programs[1:]:
            assert connections.add(program.root)
        store = closing.enter_context(opening.connect(url))
        yield Service(loop, connections.clients, machines, store, begin), connections


@pytest.mark.on_both
@pytest.mark.slow
def test_no_interleaving_over_real_processes_shows_a_stale_answer(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    with serving(store_url, tmp_path, monkeypatch) as (service, connections):
        opened = connections.opened

        class OverProcesses(Interleavings):
            enter = staticmethod(lambda _closing: service)
            commands = 4 if long else 1

        examples, steps = (100, 100) if long else (4, 20)
        length = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
        run_state_machine_as_test(OverProcesses, settings=length)
        assert connections.opened == opened
