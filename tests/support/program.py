"""The program as a child process that ends with the test."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

from tests.support import preloaded
from tests.support.preloaded import Process

PATIENCE = 120.0  # seconds; a busy machine is slow to start a process
Start = Callable[..., Process]  # with arguments, and streams for stdout, stderr and stdin


class Program:
    """`musicsvc`, or what `start` starts, with these arguments; its output goes to files in the folder.

    It has everything imported when it starts; with `preloaded.fresh`, a new interpreter runs it.
    """

    def __init__(self, folder: Path, *arguments: str, start: Start = preloaded.start) -> None:
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = start(arguments, out.fileno(), err.fileno())

    @property
    def out(self) -> str:
        return self._out.read_text("utf-8")

    @property
    def err(self) -> str:
        return self._err.read_text("utf-8")

    @property
    def root(self) -> str:
        """Wait until the server listens and return its root URL."""
        until(lambda: re.search(r"listens on |curl ", self.err + self.out) or self.process.poll() is not None)
        found = re.search(r"https?://[^/\s]+:\d+", self.err)
        assert found, self.err
        return found[0]

    @property
    def workers(self) -> list[int]:
        """The ids of its worker processes, also of those that retire (Linux)."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8")
        return [child for child in map(int, children.split()) if is_running(child)]

    @property
    def worker(self) -> int:
        """The id of its only worker process (Linux)."""
        until(lambda: len(self.workers) == 1)
        return self.workers[0]

    def end(self, signal: int) -> int:
        """Send the signal, wait, and return the exit code."""
        self.process.send_signal(signal)
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        with suppress(subprocess.TimeoutExpired):
            if self.process.poll() is None:
                self.process.terminate()
            self.process.wait(PATIENCE)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextmanager
def ended(process: Process) -> Iterator[Process]:
    """Kill the process at the end of the block, if it still runs."""
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def run(
    *arguments: str, stdin: str = "", seconds: float = 60, start: Start = preloaded.start
) -> subprocess.CompletedProcess[str]:
    """Run `musicsvc` as a process, or after `-c` this code of Python, with everything imported."""
    with TemporaryFile("w+", encoding="utf-8") as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        with ended(start(arguments, out.fileno(), err.fileno(), given.fileno())) as process:
            code = process.wait(seconds)
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read().decode(), err.read().decode())


@contextmanager
def held(*pids: int) -> Iterator[None]:
    """Stop these processes for the block, so that they do not answer."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def is_running(pid: int) -> bool:
    """Return whether the process exists and has not ended (Linux)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(holds: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until the condition holds; fail after this many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
