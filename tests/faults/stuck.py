"""Programs with a thread that keeps the lock of the interpreter, as a long search with a pattern does.

Nothing that is written in Python runs in such a process any more: no other thread, no event loop, no signal handler.
"""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.program import is_running, until

PLANT = """
import ctypes, os, pathlib, threading, time
folder, among = pathlib.Path({folder!r}), {among!r}

def hold():
    while not (folder / "hold").exists():
        time.sleep(0.02)
    (folder / f"holds-{{os.getpid()}}").touch()
    ctypes.PyDLL(None).sleep(3600)  # keeps the lock, unlike time.sleep

def begin():
    threading.Thread(target=hold, daemon=True).start()

if among == "workers":
    os.register_at_fork(after_in_child=begin)
else:
    begin()
"""


class Stuck:
    """Plants the thread in programs that start later: in each worker of a server, or in the first process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, among: str = "workers") -> None:
        self._folder = folder / "stuck"
        self._folder.mkdir()
        (self._folder / "sitecustomize.py").write_text(PLANT.format(folder=str(self._folder), among=among))
        monkeypatch.setenv("PYTHONPATH", str(self._folder))

    def hold(self, *pids: int) -> None:
        """Let all of the threads keep the lock, and wait until those of these processes do."""
        (self._folder / "hold").touch()
        until(lambda: all((self._folder / f"holds-{pid}").exists() for pid in pids))

    def end(self) -> None:
        """Kill the processes that are still stuck."""
        for file in self._folder.glob("holds-*"):
            with suppress(ProcessLookupError):
                pid = int(file.name.removeprefix("holds-"))
                if is_running(pid):
                    os.kill(pid, 9)
