"""Stopping a server while a thread of its workers keeps the lock of the interpreter."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist
from tests.faults.stuck import Stuck
from tests.support.malformed_requests import ARTISTS, JSON
from tests.support.program import Program, is_running, until
from tests.support.raw_connection import connected, request

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
TIMEOUT, ENDED = 1, "worker process {} did not stop within 5 s; killed"


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    monkeypatch.setenv("MUSICSVC_SERVER__SHUTDOWN_TIMEOUT", str(TIMEOUT))
    stuck = Stuck(tmp_path, monkeypatch)
    yield stuck
    stuck.end()


def workers_of(program: Program, count: int) -> list[int]:
    assert program.root
    until(lambda: len(program.workers) == count)
    return program.workers


def logged(program: Program) -> list[str]:
    return [json.loads(line)["message"] for line in program.err.splitlines() if line.startswith("{")]


@pytest.mark.parametrize(
    ("options", "number"),
    [(("--workers", "1"), signal.SIGTERM), (("--workers", "2"), signal.SIGINT), (("--demo",), signal.SIGINT)],
)
def test_a_server_ends_after_the_timeout_whatever_its_threads_do(
    serve: Callable[..., Program], stuck: Stuck, options: tuple[str, ...], number: int
) -> None:
    program = serve(*options)
    workers = workers_of(program, 2 if "2" in options else 1)
    stuck.hold(*workers)
    assert program.end(number) == 1
    assert not any(map(is_running, workers))
    assert {ENDED.format(worker) for worker in workers} <= {*logged(program)}
    assert logged(program)[-1] == f"stopped ({signal.Signals(number).name})"


@pytest.mark.on_both
async def test_what_was_acknowledged_stays(
    serve: Callable[..., Program], stuck: Stuck, store: Store, token: str
) -> None:
    program = serve("--workers", "2")
    async with connected(program.root) as wire:
        body = json.dumps({"name": "Barbara Strozzi"}).encode()
        await wire.send(request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, body=body))
        assert (await wire.answer()).status == 201
    stuck.hold(*workers_of(program, 2))
    assert program.end(signal.SIGTERM) == 1
    assert store.read(Artist.select().where(Artist.name == "Barbara Strozzi").count).result() == 1
