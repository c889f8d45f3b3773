"""Several worker processes on one socket: forked before any loop or thread, restarted when one dies."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from musicsvc.errors import Failure
from musicsvc.server.process.signals import ENDING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

    from musicsvc.server.process.signals import Early

log = logging.getLogger("musicsvc")
QUICK_DEATH_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 30.0


class Supervisor:
    """Keeps so many workers alive until a signal ends them all."""

    def __init__(
        self,
        work: Callable[[int, int], None],
        workers: int,
        listener: socket.socket,
        lost: Callable[[int], None] | None = None,
    ) -> None:
        """`work` is given the worker's number, which the one in its place gets too, and a file descriptor.

        That comes to its end when the worker is to end. `lost` is told the number of each worker that has died.
        """
        self._work = work
        self._workers = workers
        self._listener = listener
        self._lost = lost
        # Nothing is ever written: workers see the end of it when it is closed here, or when this process is killed.
        self._lifeline, self._held = os.pipe()
        self._born: dict[int, tuple[int, float]] = {}
        self._ending = False
        self._killed = False
        self._pause = 0.0

    def run(self, early: Early | None = None) -> None:
        """Fork the workers and replace those that die; the first signal lets them finish, the second kills them."""
        for number in ENDING:
            signal.signal(number, self._end)
        if early is not None and early.came:
            self._end(signal.SIGTERM, None)
        for worker in range(self._workers):
            self._fork(worker)
        while self._born:
            pid, status = os.wait()
            if pid not in self._born:
                continue  # a child of whatever this process was before
            worker, born = self._born.pop(pid)
            if self._lost is not None:
                self._lost(worker)
            if not self._ending:
                log.warning("worker %s ended (%s); another one takes its place", pid, _told(status))
                self._rest(time.monotonic() - born)
                self._fork(worker)
        if self._killed:
            sys.exit(1)

    def _fork(self, worker: int) -> None:
        # A worker born while a signal is handled would be missed by it.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        if not self._ending:
            pid = os.fork()
            if pid == 0:
                self._be_worker(worker)
            self._born[pid] = worker, time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)

    def _be_worker(self, worker: int) -> None:
        status = 1
        try:
            os.close(self._held)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all, the supervisor answers it
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            self._work(worker, self._lifeline)
            status = 0
        except Failure as failure:
            log.error("%s", failure.message)  # noqa: TRY400 - a line, no trace
        except Exception:
            log.exception("the worker failed")
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _rest(self, lived: float) -> None:
        """Wait longer after each quick death, so that a worker that cannot start does not spin."""
        self._pause = min(max(self._pause * 2, 0.1), LONGEST_PAUSE_SECONDS) if lived < QUICK_DEATH_SECONDS else 0.0
        until = time.monotonic() + self._pause
        while time.monotonic() < until and not self._ending:
            time.sleep(0.05)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        if self._ending:
            self._killed = True
            for pid in self._born:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        self._ending = True
        self._listener.close()
        os.close(self._held)


def _told(status: int) -> str:
    """How a process ended, in words."""
    code = os.waitstatus_to_exitcode(status)
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name
