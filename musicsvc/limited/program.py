"""The limited program: `python -P -m THIS_MODULE MODULE`, which does what `parts` of the module does.

A workbook of a kilobyte can claim a billion cells, a Parquet file of two kilobytes can have rows of gigabytes, a zip
file any number of members. Whoever reads them ends for lack of memory, and what draws keeps a hundred megabytes. So it
is this process, which may use MEMORY. It ends with the process that began it.

Each line of stdin is a task, as JSON: the seconds of CPU that it may take, or null, and the arguments of `parts`. The
program prints a line of JSON for each part, and at the end `{"end": true}`, `{"failure": message}` (JSON in JSON, as
the message may have bytes of file names), or `{"fault": …}` (`memory` or `damaged`).
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import orjson

from musicsvc.errors import Failure

MEMORY = 1024**3  # bytes
BUFFER = 64 * 1024  # bytes
LATEST = 0.1  # seconds for which a printed part may wait in the buffer


def main(module: str) -> None:
    """Do the tasks. `module`: has the function `parts`."""
    _limit(memory=MEMORY)
    parts: Callable[..., Iterator[Any]] = import_module(module).parts
    printer = _Printer()
    for arguments in _tasks(printer):
        try:
            for part in parts(*arguments):
                printer.print(part)
            printer.print({"end": True})
        except Failure as failure:
            printer.print({"failure": json.dumps(failure.message)})
        except MemoryError:
            printer.print({"fault": "memory"})


class _Printer:
    def __init__(self) -> None:
        self._file = open(1, "wb", buffering=BUFFER, closefd=False)  # noqa: SIM115 - stdout, until the end
        self._flushed = time.monotonic()

    def print(self, part: Any) -> None:
        self._file.write(orjson.dumps(part, default=str, option=orjson.OPT_APPEND_NEWLINE))
        if time.monotonic() - self._flushed > LATEST:
            self.flush()

    def flush(self) -> None:
        self._file.flush()
        self._flushed = time.monotonic()


def _tasks(printer: _Printer) -> Iterator[list[Any]]:
    """Yield the arguments of each task. While it is done, the end of stdin ends the process."""
    with open(0, "rb", closefd=False) as tasks:
        while (line := tasks.readline()).endswith(b"\n"):
            seconds, *arguments = json.loads(line)
            _limit(seconds=seconds)
            _end_with_parent(watch=True)
            yield arguments
            _end_with_parent(watch=False)
            printer.flush()


def _limit(memory: int | None = None, seconds: int | None = None) -> None:
    """Limit memory, and the CPU time from now on, where the system can."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has none

        used = int(time.process_time()) + 1
        limits = {
            resource.RLIMIT_AS: memory,
            resource.RLIMIT_CPU: seconds and used + seconds,
            resource.RLIMIT_CORE: 0,
        }
        for kind, most in limits.items():
            if most is not None:
                _, hard = resource.getrlimit(kind)
                resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _end_with_parent(*, watch: bool) -> None:
    """Have the system end this process once the other one does, which holds the other end of stdin."""
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415 - Windows has none

        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, os.O_ASYNC if watch else 0)  # SIGIO ends it


if __name__ == "__main__":
    main(*sys.argv[1:])
