"""Random interleavings of writes and reads over several servers and the command line never show a stale answer.

All run in this process: `tests/server/process/test_interleavings.py` is the same with real ones.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from musicsvc.clock import Clock
from musicsvc.config import Abuse, Settings
from musicsvc.store import opening
from musicsvc.store.engine.store import Store
from tests.interleavings.actors import Service
from tests.interleavings.machine import Interleavings
from tests.interleavings.model import ELSEWHERE, HERE
from tests.support.command import run_in_process
from tests.support.serving import running


def open_elsewhere(url: str, folder: Path) -> Store:
    """Open the store as a process of another machine."""
    from musicsvc.store.engine.postgres.store import PostgresStore  # noqa: PLC0415 - not installed for runs on SQLite

    folder.mkdir(exist_ok=True)
    return PostgresStore(url, folder)


def run(line: Sequence[str]) -> Callable[[], bool]:
    done = run_in_process(line)
    assert done.returncode == 0, done.stderr
    return lambda: True


@pytest.mark.slow
def test_no_interleaving_shows_a_stale_answer(
    new_database: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    def enter(closing: ExitStack) -> Service:
        url, loop, serving = new_database(), asyncio.new_event_loop(), AsyncExitStack()
        monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
        closing.callback(loop.close)
        machines = [HERE, HERE, HERE if url.startswith("sqlite:") else ELSEWHERE]
        own, *stores = [
            closing.enter_context(opening.connect(url) if machine is HERE else open_elsewhere(url, tmp_path / machine))
            for machine in (HERE, *machines)
        ]
        closing.callback(lambda: loop.run_until_complete(serving.aclose()))
        settings = Settings(abuse=Abuse(probes=10**6))
        clients = [
            loop.run_until_complete(serving.enter_async_context(running(store, Clock(), settings))) for store in stores
        ]
        return Service(loop, clients, machines, own, run)

    class InOneProcess(Interleavings):
        settles = long

    InOneProcess.enter = staticmethod(enter)
    examples, steps = (100, 100) if long else (5, 25)
    length = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    run_state_machine_as_test(InOneProcess, settings=length)
