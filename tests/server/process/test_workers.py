"""Worker processes: replaced when they end, gone with their supervisor, agreed about tokens."""

import errno
import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from musicsvc.errors import Unavailable
from musicsvc.server.process import supervisor as supervising
from musicsvc.server.process.supervisor import SERVING, Supervisor, Worker
from tests.support import preloaded
from tests.support.malformed_requests import ALBUMS
from tests.support.program import Program, is_running, run, until
from tests.support.raw_connection import connected, status

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
UNABLE = """
import signal, socket
from musicsvc.errors import Failure
from musicsvc.server.process import supervisor

def work(*_):
    raise Failure("It is broken.")

supervisor.TRIES = 3
signal.pthread_sigmask(signal.SIG_BLOCK, supervisor.SIGNALS)
with socket.create_server(("127.0.0.1", 0)) as listener:
    supervisor.Supervisor(work, 1, listener).run()
"""
WORKERS_ONLY = {"aiohttp", "apsw", "orjson", "uvloop", "yarl"}


def loaded(pid: int) -> set[str]:
    """Return the packages whose libraries a process has in memory."""
    return set(re.findall(r"site-packages/(\w+)/", Path(f"/proc/{pid}/maps").read_text("utf-8")))


@pytest.mark.slow
async def test_workers_are_replaced_and_end_together(serve: Callable[..., Program]) -> None:
    program = serve("--workers", "2")
    root = program.root
    until(lambda: len(program.workers) == 2)
    killed, kept = program.workers
    os.kill(killed, signal.SIGKILL)
    until(lambda: len(set(program.workers) - {killed}) == 2)
    assert kept in program.workers
    async with connected(root) as wire:
        assert await status(wire, "GET", ALBUMS) == 200
    workers = program.workers
    os.killpg(program.process.pid, signal.SIGINT)  # to all processes, as a terminal does
    assert program.process.wait(30) == 0
    until(lambda: not any(map(is_running, workers)), 20)
    line, stop = map(json.loads, program.err.splitlines()[1:])
    assert stop["message"] == "stopped (SIGINT)"
    assert (line["level"], line["logger"]) == ("warning", "musicsvc")
    assert line["message"] == f"worker process {killed} exited (SIGKILL); starting a replacement"


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
async def test_a_worker_that_cannot_start_says_so_in_one_line_and_is_replaced(
    serve: Callable[..., Program], store_url: str
) -> None:
    program = serve("--workers", "2")
    root = program.root
    until(lambda: len(program.workers) == 2)
    killed = program.workers[0]
    database = Path(store_url.removeprefix("sqlite:///"))
    away = database.rename(database.with_name("away"))  # noqa: ASYNC240 - at once
    os.kill(killed, signal.SIGKILL)
    until(lambda: "(exit 1)" in program.err)
    away.rename(database)
    until(lambda: len(set(program.workers) - {killed}) == 2)
    async with connected(root) as wire:
        assert await status(wire, "GET", ALBUMS) == 200
    errors = [line for line in map(json.loads, program.err.splitlines()[1:]) if line["level"] == "error"]
    assert errors
    assert all(str(database) in line["message"] and "exception" not in line for line in errors)


async def test_workers_do_not_outlive_their_supervisor(serve: Callable[..., Program]) -> None:
    program = serve("--workers", "2")
    root = program.root
    until(lambda: len(program.workers) == 2)
    workers = program.workers
    async with connected(root) as wire:
        assert await status(wire, "GET", ALBUMS) == 200
        program.process.kill()
        assert await wire.rest() == b""
    until(lambda: not any(map(is_running, workers)), 20)
    with pytest.raises(ConnectionRefusedError):
        async with connected(root):
            pass


def test_the_log_says_to_the_operator_why_a_worker_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def work(*_: object) -> None:
        raise Unavailable(here="The database was moved.")

    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)
    for name in ("signal", "pthread_sigmask"):
        monkeypatch.setattr(signal, name, lambda *_: None)
    with socket.socket() as listener:
        Supervisor(work, 1, listener)._run_worker(0, listener)
    assert (exits, [record.getMessage() for record in caplog.records]) == (
        [1],
        ["worker process failed: The database was moved."],
    )


@pytest.mark.parametrize("other", [b"", SERVING])
def test_clients_do_not_wait_while_no_worker_can_start(monkeypatch: pytest.MonkeyPatch, other: bytes) -> None:
    monkeypatch.setattr(supervising, "MAX_BACKOFF_SECONDS", supervising.LONG_BACKOFF_SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        listener.setblocking(False)
        supervisor = Supervisor(lambda *_: None, 2, listener)
        link, worker = socket.socketpair()
        with link, worker:
            worker.send(other)
            supervisor._running[1] = Worker(0, 0.0, link)
            for _ in range(5):  # quick exits of the other worker
                supervisor._wait_before_restart(0.0)
        client.setblocking(False)
        if other:
            with pytest.raises(BlockingIOError):
                client.recv(1)
        else:
            assert client.recv(1) == b""


def test_a_server_ends_when_no_worker_can_start() -> None:
    ended = run("-c", UNABLE)
    assert ended.returncode == 1
    assert ended.stderr.count("worker process failed: It is broken.") == 3
    assert "no worker process can start; the server ends after 3 tries" in ended.stderr


def test_a_server_goes_on_when_the_system_starts_no_further_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    exited = iter([(1, signal.SIGKILL), (0, 0)])
    forks: Iterator[OSError | int] = iter([BlockingIOError(errno.EAGAIN, "none left"), 2])

    def fork() -> int:
        if isinstance(found := next(forks), OSError):
            raise found
        return found

    monkeypatch.setattr(os, "waitpid", lambda *_: next(exited))
    monkeypatch.setattr(os, "fork", fork)
    with socket.socket() as listener, socket.socket() as link:
        supervisor = Supervisor(lambda *_: None, 1, listener)
        supervisor._running[1] = Worker(0, 0.0, link)
        supervisor._reap()
        assert list(supervisor._running) == [2]
        supervisor._running[2].link.close()
    assert caplog.messages[1:] == ["cannot start a worker process: The system starts no further process: none left."]


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
@pytest.mark.usefixtures("migrated")
def test_the_supervisor_of_one_worker_has_little_in_memory(folder: Path) -> None:
    with Program(folder, "serve", "--port", "0", start=preloaded.fresh) as program:
        assert program.root
        until(lambda: loaded(program.worker) >= WORKERS_ONLY)  # it may import some after the address was printed
        assert not WORKERS_ONLY & loaded(program.process.pid)
        status = Path(f"/proc/{program.process.pid}/status").read_text("utf-8")
        anonymous = int(re.findall(r"RssAnon:\s+(\d+) kB", status)[0])
        assert anonymous < 30 * 1024
