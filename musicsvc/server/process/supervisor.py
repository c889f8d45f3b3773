"""Worker processes that share one socket: forked before any event loop or thread starts, replaced when they exit."""

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType

from musicsvc.errors import Failure
from musicsvc.server.process.signals import RELOAD, STOP_SIGNALS, STOPPED, EarlySignal, Hangup, stop_reason

log = logging.getLogger("musicsvc")
QUICK_EXIT_SECONDS = 5.0
MAX_BACKOFF_SECONDS = 30.0


class Supervisor:
    """Keeps `workers` processes running until a signal stops them all."""

    def __init__(
        self,
        work: Callable[[int, int], None],
        workers: int,
        listener: socket.socket,
        on_exit: Callable[[int], None] | None = None,
        reload: Callable[[], bool] | None = None,
    ) -> None:
        """`work`: called in each worker with the worker's number and a pipe; it must return when the pipe is closed.

        `on_exit`: called with the number of a worker that has exited. Its replacement gets the same number.
        `reload`: called on SIGHUP. If it returns True, the workers get SIGHUP too.
        """
        self._work = work
        self._workers = workers
        self._listener = listener
        self._on_exit = on_exit
        self._reload = reload
        # Nothing is written to the pipe. This process closes its end, or the system does if this process is killed.
        self._parent_pipe, self._parent_end = os.pipe()
        self._running: dict[int, tuple[int, float]] = {}
        self._stopping = False
        self._reason = ""
        self._killed = False
        self._backoff = 0.0

    def run(self, early: EarlySignal | None = None, hangup: Hangup | None = None) -> None:
        """Fork workers and replace any that exit. The first stop signal lets them finish, the second kills them."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop)
        if hangup is not None and hangup.enabled:
            signal.signal(signal.SIGHUP, partial(self._hang_up, hangup))
        if early is not None and early.received is not None:
            self._stop(early.received, None)
        for worker in range(self._workers):
            self._fork(worker)
        while self._running:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, RELOAD)  # only here, so that a reload interrupts nothing
            pid, status = os.wait()
            signal.pthread_sigmask(signal.SIG_BLOCK, RELOAD)
            if pid not in self._running:
                continue  # a child process from before the server started
            worker, started = self._running.pop(pid)
            if self._on_exit is not None:
                self._on_exit(worker)
            if not self._stopping:
                log.warning("worker process %s exited (%s); starting a replacement", pid, _exit_reason(status))
                self._wait_before_restart(time.monotonic() - started)
                self._fork(worker)
        log.info(STOPPED, self._reason)
        if self._killed:
            sys.exit(1)

    def _fork(self, worker: int) -> None:
        # If a signal were handled before the new worker is in `_running`, the worker would not be stopped.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        if not self._stopping:
            pid = os.fork()
            if pid == 0:
                self._run_worker(worker)
            self._running[pid] = worker, time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def _run_worker(self, worker: int) -> None:
        status = 1
        try:
            os.close(self._parent_end)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes; the supervisor acts
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
            self._work(worker, self._parent_pipe)
            status = 0
        except Failure as failure:
            log.error("worker process failed: %s", failure.here)  # noqa: TRY400 - a line, no trace
        except Exception:
            log.exception("worker process failed with an unhandled exception")
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _wait_before_restart(self, lived: float) -> None:
        """Wait before a restart, longer after each quick exit. `lived`: seconds for which the worker has run."""
        quick = lived < QUICK_EXIT_SECONDS
        self._backoff = min(max(self._backoff * 2, 0.1), MAX_BACKOFF_SECONDS) if quick else 0.0
        until = time.monotonic() + self._backoff
        while time.monotonic() < until and not self._stopping:
            time.sleep(0.05)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if self._stopping:
            self._killed = True
            for pid in self._running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        self._stopping = True
        self._reason = stop_reason(number)
        self._listener.close()
        os.close(self._parent_end)

    def _hang_up(self, hangup: Hangup, number: int, frame: FrameType | None) -> None:
        if hangup.is_closed_terminal():
            if not self._stopping:
                self._stop(number, frame)
        elif not self._stopping and self._reload is not None and self._reload():
            for pid in self._running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGHUP)


def _exit_reason(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name
