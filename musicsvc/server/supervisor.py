"""Several worker processes on one socket: forked before any loop or thread, restarted when one dies."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

QUICK_DEATH_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 30.0


class Supervisor:
    """Keeps so many workers alive until a signal ends them all."""

    def __init__(self, work: Callable[[], None], workers: int) -> None:
        self._work = work
        self._workers = workers
        self._born: dict[int, float] = {}
        self._ending = False
        self._pause = 0.0

    def run(self) -> None:
        """Fork the workers, replace those that die, pass signals on, return when all have ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        for _ in range(self._workers):
            self._fork()
        while self._born:
            pid, _ = os.wait()
            lived = time.monotonic() - self._born.pop(pid, 0.0)
            if not self._ending:
                self._rest(lived)
                self._fork()

    def _fork(self) -> None:
        if self._ending:
            return
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                self._work()
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        self._born[pid] = time.monotonic()

    def _rest(self, lived: float) -> None:
        """Wait longer after each quick death, so that a worker that cannot start does not spin."""
        self._pause = min(max(self._pause * 2, 0.1), LONGEST_PAUSE_SECONDS) if lived < QUICK_DEATH_SECONDS else 0.0
        until = time.monotonic() + self._pause
        while time.monotonic() < until and not self._ending:
            time.sleep(0.05)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        self._ending = True
        for pid in self._born:
            os.kill(pid, number)


def run(work: Callable[[], None], workers: int) -> None:
    """Run `work` in so many processes until SIGTERM or SIGINT."""
    Supervisor(work, workers).run()
