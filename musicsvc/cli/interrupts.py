"""Kills a command that goes on after Ctrl+C, such as one with a thread that keeps the lock of the interpreter.

The handler of a signal that is written in Python waits for that lock. The part of it that the interpreter has in C does
not, and notes the signal in a pipe, which another process reads. SIGTERM needs none of this: the system ends a command
at once.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from musicsvc.cli.session import Session

AGAIN = "Run the same command again to continue."


@contextmanager
def kill_after(seconds: float, what: str) -> Iterator[None]:
    """Kill this process if it does not leave the block within `seconds` of SIGINT, and then print `what`."""
    if threading.current_thread() is not threading.main_thread():  # the others get no signals
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    watcher = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(seconds), what],
        stdin=reading,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl+C in a terminal does not end it
    )
    os.close(reading)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)  # ends the watcher
        watcher.wait()


@contextmanager
def stopping(session: "Session", state: str = "", again: str = AGAIN) -> Iterator[None]:
    """Kill the command if it takes longer to stop after Ctrl+C than a server may. `again`: how to continue then.

    `state`: the state that an interrupted command leaves, which is then printed.
    """
    from musicsvc.server.process.supervisor import ENDING_SECONDS

    seconds = session.settings().server.shutdown_timeout + ENDING_SECONDS
    with kill_after(seconds, f"Error: The command did not stop within {seconds:g} s; killed. {again}"):
        try:
            yield
        except KeyboardInterrupt:
            if state:
                session.echo(f"Interrupted. {state} {again}")
            raise


def watch(pid: int, seconds: float, what: str) -> None:
    """Wait for SIGINT in the pipe on stdin, and then kill the process unless it closes the pipe."""
    deadline = None
    while select.select([0], [], [], None if deadline is None else max(0.0, deadline - time.monotonic()))[0]:
        if not (numbers := os.read(0, 64)):
            return
        if signal.SIGINT in numbers and deadline is None:
            deadline = time.monotonic() + seconds
    os.kill(pid, signal.SIGKILL)  # it has the pipe open, so the id is still its own
    sys.stderr.write(f"{what}\n")


if __name__ == "__main__":
    watch(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
