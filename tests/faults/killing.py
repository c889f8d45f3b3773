"""Run some work in a process that is killed (kill -9) before its n-th step.

A step is a statement of SQLite on any connection, or a call that creates, renames, links, locks or removes a file. Used
by separate scripts (`python -m tests.store.…`), because a process with threads should not fork.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator

import apsw

CHANGING = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.truncate", "os.utime", "fcntl.flock"}


def rounds(every: int) -> Iterator[int]:
    """Yield the numbers of the steps to kill before: every n-th."""
    step = 1
    while True:
        yield step
        step += every


def killed_before(step: int, work: Callable[[Callable[[], None]], object]) -> bool:
    """Do the work in a child that is killed before its step of this number; False where it was done before that.

    `work` is given a function by which it counts steps of its own.
    """
    child = os.fork()
    if child == 0:
        _die_at(step, work)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in {0, -signal.SIGKILL}:
        raise SystemExit(f"the work failed at step {step}")
    return code == -signal.SIGKILL


def _die_at(step: int, work: Callable[[Callable[[], None]], object]) -> None:
    left = step

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(_cursor: object, _statement: str, _bindings: object) -> bool:
        count()
        return True

    def audited(event: str, arguments: tuple[object, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in CHANGING or writes:
            count()

    try:
        apsw.connection_hooks.append(lambda connection: connection.set_exec_trace(traced))
        sys.addaudithook(audited)
        work(count)
    except BaseException:  # noqa: BLE001 - told by the parent
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)
