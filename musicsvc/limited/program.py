"""The limited program: `python -P -m THIS_MODULE MODULE`, which does what `parts` of the module does.

A workbook of a kilobyte can claim a billion cells, a Parquet file of two kilobytes can have rows of gigabytes, a zip
file any number of members. Whoever reads them ends for lack of memory, and what draws keeps a hundred megabytes. So it
is this process, which may use MEMORY. It ends with the process that began it.

Each line of stdin is a task, as JSON: the seconds of CPU that it may take, or null, and the arguments of `parts`. The
program prints a line of JSON for each part, and at the end `{"end": true}`, `{"failure": message}` (JSON in JSON, as
the message may have bytes of file names), or `{"fault": …}` (`memory`, or `damaged` and why).
"""

import fcntl
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from select import select
from typing import Any

import orjson

from musicsvc.errors import Failure

MEMORY = 1024**3  # bytes
BUFFER = 64 * 1024  # bytes
# Maps of Parquet have keys of any type.
OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
LATEST = 0.1  # seconds for which a printed part may wait in the buffer


def main(module: str) -> None:
    """Do the tasks. `module`: has the function `parts`."""
    _limit(resource.RLIMIT_AS, MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    parts: Callable[..., Iterator[Any]] = import_module(module).parts
    printer = _Printer()
    for arguments in _tasks(printer):
        try:
            for part in parts(*arguments):
                printer.print(part)
            printer.add({"end": True})
        except Failure as failure:
            printer.add({"failure": json.dumps(failure.message)})
        except MemoryError:
            printer.add({"fault": "memory"})
        except BaseException as error:  # noqa: BLE001 - the other process tells it; for some damage readers panic
            printer.add({"fault": f"damaged: {error!r}"})


class _Printer:
    def __init__(self) -> None:
        self._file = open(1, "wb", buffering=BUFFER, closefd=False)  # noqa: SIM115 - stdout, until the end
        self._flushed = time.monotonic()

    def add(self, part: Any) -> None:
        """Print a part at the next `flush`. That of a task's end is after the signal is switched off."""
        self._file.write(orjson.dumps(part, default=str, option=OPTIONS))

    def print(self, part: Any) -> None:
        self.add(part)
        if time.monotonic() - self._flushed > LATEST:
            self.flush()

    def flush(self) -> None:
        self._file.flush()
        self._flushed = time.monotonic()


def _tasks(printer: _Printer) -> Iterator[list[Any]]:
    """Yield the arguments of each task. While it is done, the end of the other process ends this one."""
    with open(0, "rb", closefd=False) as tasks:
        while (line := tasks.readline()).endswith(b"\n"):
            seconds, *arguments = json.loads(line)
            if seconds is not None:
                _limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + seconds)
            fcntl.fcntl(0, fcntl.F_SETFL, os.O_ASYNC)  # SIGIO, which ends this process
            if select([0], [], [], 0)[0]:  # the other process has ended before
                return
            yield arguments
            fcntl.fcntl(0, fcntl.F_SETFL, 0)
            printer.flush()


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main(*sys.argv[1:])
