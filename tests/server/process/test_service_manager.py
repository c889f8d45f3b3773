"""Messages to the service manager (sd_notify), received on a real socket."""

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.server.conftest import Start
from tests.support import preloaded
from tests.support.program import Program, ended, held, until
from tests.support.reloads import NEW, SettingsFile, reload

pytestmark = [
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux"),
]
WATCHDOG = 0.4  # seconds
ALIVE = "WATCHDOG=1"


class Manager:
    """Receives messages in place of systemd."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(30)
        self.received: list[list[str]] = []

    def next(self) -> list[str]:
        """Wait for a message and return its lines."""
        self.received.append(self._socket.recv(4096).decode().split("\n"))
        return self.received[-1]

    def next_of(self, kind: str) -> list[str]:
        """Wait for a message that begins so."""
        while not self.next()[0].startswith(kind):
            pass
        return self.received[-1]

    def silent(self, seconds: float) -> bool:
        """Return whether no message arrives for so long."""
        self._socket.settimeout(seconds)
        try:
            return not self.next()
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(30)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    """Name a socket to the programs of the test, and return its other end."""
    name = str(tmp_path / "n") if request.param == "path" else f"@musicsvc-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    receiver = Manager(name.replace("@", "\0"))
    yield receiver
    receiver.close()


@pytest.mark.slow
def test_start_reload_and_stop_are_told(start: Start, settings: SettingsFile, manager: Manager) -> None:
    program = start("--workers", "2")
    serving = f"STATUS=Serving {program.root}"
    assert manager.next() == ["READY=1", serving]
    began = time.monotonic_ns() // 1000
    settings.write(NEW)
    reload(program)
    kind, at = manager.next()
    assert kind == "RELOADING=1"
    assert began <= int(at.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
    assert manager.next() == ["READY=1", f"{serving} (reloaded the settings)"]
    settings.write("many")
    reload(program, "could not reload")
    assert manager.next()[0] == "RELOADING=1"
    assert manager.next() == ["READY=1", f"{serving} (could not reload the settings, the old ones still apply)"]
    assert program.end(signal.SIGTERM) == 0
    assert manager.next() == ["STOPPING=1"]
    assert manager.silent(0.01)


WAITING = """
import os, signal, socket
from musicsvc.server.process.service_manager import ServiceManager
from musicsvc.server.process.supervisor import SERVING, SIGNALS, Supervisor

def work(number, supervisor):
    os.read(0, 1)
    supervisor.send(SERVING)
    supervisor.recv(1)

signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
with socket.socket() as listener:
    Supervisor(work, 2, listener, manager=ServiceManager.of_process("Serving")).run()
"""


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_a_server_is_ready_when_all_its_workers_serve(manager: Manager) -> None:
    reading, writing = os.pipe()
    program = preloaded.start(["-c", WAITING], stdin=reading)
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as pipe, ended(program):
        for _ in range(2):
            assert manager.silent(0.2)
            pipe.write(b"x")
        assert manager.next() == ["READY=1", "STATUS=Serving"]
        program.terminate()
        assert program.wait(30) == 0


@pytest.mark.slow
@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_the_watchdog_is_told_only_while_every_worker_responds(
    start: Start, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", str(int(WATCHDOG * 1e6)))
    program = start("--workers", "2")
    assert manager.next()[0] == "READY=1"
    assert [manager.next() for _ in range(3)] == [[ALIVE]] * 3
    frozen = program.workers[1]
    with held(frozen):
        for _ in range(2):  # answers on their way
            manager.silent(WATCHDOG / 2)
        assert manager.silent(3 * WATCHDOG)
    assert manager.next() == [ALIVE]
    os.kill(frozen, signal.SIGKILL)
    until(lambda: frozen not in program.workers and len(program.workers) == 2)
    assert [manager.next() for _ in range(3)] == [[ALIVE]] * 3
    assert program.end(signal.SIGTERM) == 0
    assert manager.next_of("STOPPING")


@pytest.mark.parametrize("manager", ["path"], indirect=True)
@pytest.mark.parametrize(("microseconds", "pid"), [("0", ""), ("soon", ""), ("100000", "1")])
def test_a_watchdog_of_another_process_or_without_a_time_is_none(
    start: Start, manager: Manager, monkeypatch: pytest.MonkeyPatch, microseconds: str, pid: str
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    if pid:
        monkeypatch.setenv("WATCHDOG_PID", pid)
    program = start()
    assert manager.next()[0] == "READY=1"
    assert manager.silent(0.3)
    assert program.end(signal.SIGTERM) == 0
    assert manager.next() == ["STOPPING=1"]


def test_a_service_manager_that_is_gone_stops_no_server(
    serve: Callable[..., Program], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    monkeypatch.setenv("WATCHDOG_USEC", "200000")
    program = serve()
    until(lambda: "cannot notify the service manager" in program.err)
    assert program.end(signal.SIGTERM) == 0
    assert len(re.findall("cannot notify", program.err)) == 1
