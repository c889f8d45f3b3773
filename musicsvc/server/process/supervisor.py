"""Worker processes that share one socket: forked before any event loop or thread starts, replaced when they exit.

The supervisor talks to each worker over a pair of sockets. When it closes its end, or is killed, the worker stops. One
that has not stopped in time is killed: no signal handler or thread of its own could end it while another thread holds
the lock of the interpreter.
"""

import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import NoReturn

from musicsvc.errors import Failure
from musicsvc.server.process import service_manager
from musicsvc.server.process.service_manager import ServiceManager

log = logging.getLogger("musicsvc")
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}
SIGNALS = {*STOP_SIGNALS, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM}
CHECKED, READY, SERVING, RETIRING, ALIVE = b"0", b"1", b"2", b"3", b"a"  # messages of a worker
RETIRE, PING = b"r", b"p"  # messages to a worker
LONGEST = 64  # bytes of messages that are read at once
QUICK_EXIT_SECONDS = 5.0
MAX_BACKOFF_SECONDS = 30.0
TRIES = 10  # to start a worker while none serves, in about a minute
LONG_BACKOFF_SECONDS = 1.0  # clients wait for a shorter one, if no worker serves
POLL_SECONDS = 0.05
ENDING_SECONDS = 4.0  # for a process to end once its requests are cut off: to write its logs, to stop an import
RETIRING_SECONDS = 5.0  # the longest wait for a worker to accept no more connections
CHECKS = 4  # in the time of the watchdog


@dataclass(slots=True)
class Worker:
    number: int
    started: float
    link: socket.socket
    retires: bool = False
    heard: bytes = b""  # its messages
    asked: bool = False

    def listen(self) -> bool:
        """Read the messages that have arrived. Return False if the worker has exited."""
        try:
            received = self.link.recv(LONGEST, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.heard += received
        return bool(received)

    def has_served(self) -> bool:
        self.listen()
        return SERVING in self.heard

    def ask(self) -> None:
        """Ask for a message of its event loop."""
        self.asked, self.heard = True, self.heard.replace(ALIVE, b"")
        with suppress(OSError):  # it has just exited
            self.link.send(PING, socket.MSG_DONTWAIT)

    def retire(self) -> None:
        """Let the worker finish its connections and exit."""
        self.retires = True
        with suppress(OSError):  # it has just exited
            self.link.send(RETIRE)


class Supervisor:
    """Keeps `workers` processes running until a signal stops them all. All of `SIGNALS` must be blocked."""

    def __init__(
        self,
        work: Callable[[int, socket.socket], None],
        workers: int,
        listener: socket.socket,
        reload: Callable[[], str] | None = None,
        on_exit: Callable[[int], None] | None = None,
        manager: ServiceManager | None = None,
        patience: Callable[[], float] = lambda: ENDING_SECONDS,
    ) -> None:
        """`work`: called in each worker with a number that no other running worker has; it must return when told to.

        Its second argument is the connection to the supervisor.
        `reload`: called on SIGHUP, which otherwise stops the server; returns the outcome. `on_exit`: called with the
        number of a worker that has exited. `manager`: gets a message when all workers serve, and while they respond.
        `patience`: returns the seconds that workers have to stop.
        """
        self._work = work
        self._workers = workers
        self._listener = listener
        self._reload = reload
        self._on_exit = on_exit
        self._manager = manager or ServiceManager(None, None)
        self._patience = patience
        self._announced = False
        self._next_check = 0.0
        self._hangups = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN  # as under nohup
        self._had_terminal = _has_terminal()
        self._running: dict[int, Worker] = {}
        self._reason = ""  # why the server stops
        self._status = 0
        self._failures = 0  # workers in a row that exited before they served
        self._backoff = 0.0
        signal.signal(signal.SIGCHLD, lambda *_: None)  # some systems do not report a signal that nobody handles

    def begin(self, check: Callable[[], None]) -> None:
        """Fork the first worker, and wait until it has called `check`. What that raises in it, it raises there.

        Then the program exits here as it does there, or as a stop signal says that is pending.
        """
        worker = self._fork(check)
        if not self._wait_for(worker, CHECKED):
            [pid] = self._running
            if _stop_is_pending():
                os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            sys.exit(abs(os.waitstatus_to_exitcode(status)))

    def run(self) -> None:
        """Fork workers and replace any that exit. The first stop signal lets them finish, the second kills them.

        So does SIGALRM, the timer of a stop. Exits with 1 if workers were killed, or if none can start.
        """
        while len(self._running) < self._workers:
            self._fork()
        while self._running:
            number = self._next_signal()
            if number == signal.SIGCHLD:
                self._reap()
            elif number in STOP_SIGNALS:
                self._stop(signal.Signals(number).name)
            elif number == signal.SIGALRM:
                self._kill_late()
            elif number == signal.SIGHUP and self._hangups:
                self._hang_up()
        log.info("stopped (%s)", self._reason)
        if self._status:
            sys.exit(self._status)

    def _next_signal(self) -> int | None:
        """Wait for a signal, or until the workers must be checked again. Then return None."""
        if (seconds := self._check()) is None:
            return signal.sigwait(SIGNALS)
        found = signal.sigtimedwait(SIGNALS, seconds)
        return None if found is None else found.si_signo

    def _check(self) -> float | None:
        """Tell the service manager whether the workers serve. Return the seconds until the next check, or None."""
        if not self._manager.present or self._reason:
            return None
        current = [worker for worker in self._running.values() if not worker.retires and worker.listen()]
        if not self._announced:
            self._announced = self._all(current, SERVING)
            if not self._announced:
                return POLL_SECONDS
            self._manager.tell_ready()
        if self._manager.watchdog is None:
            return None
        if (rest := self._next_check - time.monotonic()) > 0:
            return rest
        if self._all(current, ALIVE):
            self._manager.tell(service_manager.ALIVE)
        for worker in current:
            if not worker.asked or ALIVE in worker.heard:
                worker.ask()
        seconds = self._manager.watchdog / CHECKS
        self._next_check = time.monotonic() + seconds
        return seconds

    def _all(self, workers: list[Worker], message: bytes) -> bool:
        """Return whether all workers have sent the message, or while others take their places, as many."""
        return sum(message in worker.heard for worker in workers) >= self._workers

    def replace_workers(self) -> bool:
        """Start new workers, and retire the old ones once all new ones are ready. Return False if one is not."""
        old = [worker for worker in self._running.values() if not worker.retires]
        new = [worker for _ in old if (worker := self._try_fork()) is not None]
        if len(new) < len(old) or not all(self._wait_for(worker, READY) for worker in new):
            for worker in new:
                worker.retires = True
                worker.link.close()
            return False
        for worker in old:
            worker.retire()
        for worker in old:
            self._wait_for(worker, RETIRING, RETIRING_SECONDS)
        for worker in new:
            self._wait_for(worker, SERVING)
        return True

    def _wait_for(self, worker: Worker, message: bytes, seconds: float = inf) -> bool:
        """Wait for a message of the worker. Return False if it exits, after `seconds`, or if a stop signal arrives."""
        until = time.monotonic() + seconds
        while message not in worker.heard:
            if select.select([worker.link], [], [], POLL_SECONDS)[0]:
                if not worker.listen():
                    return False
            elif time.monotonic() > until or _stop_is_pending():
                return False
            self._check()
        return True

    def _fork(self, check: Callable[[], None] | None = None) -> Worker:
        number = min(set(range(len(self._running) + 1)) - {worker.number for worker in self._running.values()})
        link, supervisor = socket.socketpair()
        try:
            pid = os.fork()
        except OSError as error:
            link.close()
            supervisor.close()
            raise Failure(f"The system starts no further process: {error.strerror}.") from None
        if pid == 0:
            for ours in (link, *(worker.link for worker in self._running.values())):
                ours.close()
            if check is not None:
                check()
                supervisor.send(CHECKED)
            self._run_worker(number, supervisor)
        supervisor.close()
        self._running[pid] = Worker(number, time.monotonic(), link)
        return self._running[pid]

    def _try_fork(self) -> Worker | None:
        """Fork a worker. Return None, with a line in the log, if the system allows no further process."""
        try:
            return self._fork()
        except Failure as failure:
            log.error("cannot start a worker process: %s", failure.here)  # noqa: TRY400 - a line, no trace
        return None

    def _run_worker(self, number: int, link: socket.socket) -> NoReturn:
        status = 1
        try:
            for handled in (signal.SIGTERM, signal.SIGCHLD):
                signal.signal(handled, signal.SIG_DFL)
            for ignored in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes
                signal.signal(ignored, signal.SIG_IGN)
            self._work(number, link)
            status = 0
        except Failure as failure:
            log.error("worker process failed: %s", failure.here)  # noqa: TRY400 - a line, no trace
        except Exception:
            log.exception("worker process failed with an unhandled exception")
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        """Replace the workers that have exited, unless that was expected."""
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            worker = self._running.pop(pid, None)
            if worker is None:
                continue  # a child process from before the server started
            served = worker.has_served()
            worker.link.close()
            if self._on_exit is not None:
                self._on_exit(worker.number)
            if not self._reason and not worker.retires:
                log.warning("worker process %s exited (%s); starting a replacement", pid, _exit_reason(status))
                self._failures = 0 if served else self._failures + 1
                if self._failures >= TRIES and not self._serves():
                    log.error("no worker process can start; the server ends after %s tries", TRIES)
                    self._status = 1
                    self._stop("no worker process can start")
                    continue
                self._wait_before_restart(time.monotonic() - worker.started if served else 0.0)
                while self._try_fork() is None and not _stop_is_pending():
                    self._wait_before_restart(0.0)

    def _wait_before_restart(self, lived: float) -> None:
        """Wait before a restart, longer after each quick exit. `lived`: seconds for which the worker has served.

        Connections are closed during a long wait while no worker serves, so that clients do not wait in vain.
        """
        quick = lived < QUICK_EXIT_SECONDS
        self._backoff = min(max(self._backoff * 2, 0.1), MAX_BACKOFF_SECONDS) if quick else 0.0
        until = time.monotonic() + self._backoff
        while time.monotonic() < until and not _stop_is_pending():
            if self._backoff >= LONG_BACKOFF_SECONDS and not self._serves():
                with suppress(OSError):  # nobody waits
                    self._listener.accept()[0].close()
                    continue
            time.sleep(POLL_SECONDS)

    def _serves(self) -> bool:
        return any(worker.has_served() for worker in self._running.values())

    def _stop(self, reason: str) -> None:
        if self._reason:
            self._kill()
            return
        self._reason = reason
        signal.setitimer(signal.ITIMER_REAL, max(self._patience(), POLL_SECONDS))
        self._manager.tell(service_manager.STOPPING)
        self._listener.close()
        for worker in self._running.values():
            worker.link.close()

    def _kill_late(self) -> None:
        """Kill the workers that have not stopped in time."""
        if self._reason:
            for pid in self._running:
                log.error("worker process %s did not stop within %g s; killed", pid, self._patience())
            self._kill()

    def _kill(self) -> None:
        self._status = 1
        for pid in self._running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _hang_up(self) -> None:
        """Reload the settings, unless the signal was sent because the terminal was closed."""
        if self._had_terminal and not _has_terminal():
            if not self._reason:
                self._stop("the terminal was closed")
        elif self._reload is None:
            self._stop("SIGHUP")
        elif not self._reason and not _stop_is_pending():
            self._manager.tell_reloading()
            self._manager.tell_ready(self._reload())


def _stop_is_pending() -> bool:
    return bool(signal.sigpending() & STOP_SIGNALS)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _exit_reason(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name
