"""Signals of a server process: stop signals that arrive while it starts, and SIGHUP, which reloads the settings."""

import os
import signal
from types import FrameType

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}
RELOAD = {signal.SIGHUP}
STOPPED = "stopped (%s)"  # the message of the log, with the reason


def stop_reason(number: int) -> str:
    """Return the reason of a stop by this signal. SIGHUP stops a server only if its terminal was closed."""
    return "the terminal was closed" if number == signal.SIGHUP else signal.Signals(number).name


class EarlySignal:
    """Handles stop signals while the server starts: sets `received` to the signal that arrives, if one does."""

    def __init__(self) -> None:
        self.received: int | None = None
        for number in STOP_SIGNALS:
            signal.signal(number, self._record)

    def _record(self, number: int, _frame: FrameType | None) -> None:
        self.received = number


class Hangup:
    """Handling of SIGHUP, which reloads the settings unless it was sent because the terminal was closed.

    The signal stays blocked, in this process and its children, until `accept` is called.
    """

    def __init__(self) -> None:
        self.enabled = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN  # as under nohup
        self._had_terminal = _has_terminal()
        signal.pthread_sigmask(signal.SIG_BLOCK, RELOAD)

    @staticmethod
    def accept() -> None:
        """Unblock SIGHUP. Call this once a handler is installed."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, RELOAD)

    def is_closed_terminal(self) -> bool:
        """Return whether the terminal in which this process was started has been closed."""
        return self._had_terminal and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
