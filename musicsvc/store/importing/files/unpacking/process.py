"""The limited program: `python -P -m THIS_MODULE TASK FILE FOLDER OPTIONS`.

A workbook of a kilobyte can claim a billion cells, a Parquet file of two kilobytes can have rows of gigabytes, a zip
file any number of members. Whoever reads them ends for lack of memory, so it is this process, which may use MEMORY and
the seconds of CPU in OPTIONS. It ends with the process that began it.

It prints a line of JSON about the file, then a line for each row (`rows.py`) and `{"position": …}` now and then, and at
the end `{"end": true}`, `{"failure": message}` or `{"fault": …}` (`memory` or `damaged`).
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from musicsvc.errors import Failure

MEMORY = 1024**3  # bytes
PACKAGE = "musicsvc.store.importing.files.unpacking"  # with a module for each task
PATH = "\0"  # in messages, in place of the path, which JSON may not hold
BUFFER = 64 * 1024  # bytes
LATEST = 0.1  # seconds for which a printed row may wait in the buffer

Parts = Callable[[Path, Path, dict[str, Any]], Iterator[Any]]


def main(task: str, file: str, folder: str, options: str) -> None:
    """Do the task. `folder`: for temporary files. `options`: as JSON."""
    chosen = json.loads(options)
    _limit(chosen.pop("seconds", None))
    _end_with_parent()
    printer = _Printer()
    try:
        parts: Parts = import_module(f"{PACKAGE}.{task}").parts
        for part in parts(Path(file), Path(folder), chosen):
            printer.print(part)
        printer.print({"end": True})
    except Failure as failure:
        printer.print({"failure": failure.message.replace(file, PATH)})
    except MemoryError:
        printer.print({"fault": "memory"})
    printer.flush()


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


def _limit(seconds: int | None) -> None:
    """Limit memory, and CPU time if there is a limit, where the system can."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has none

        limits = {resource.RLIMIT_AS: MEMORY, resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
        for kind, most in limits.items():
            if most is not None:
                _, hard = resource.getrlimit(kind)
                resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _end_with_parent() -> None:
    """Have the system end this process once the other one does, which holds the other end of stdin."""
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415 - Windows has none

        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, os.O_ASYNC)  # SIGIO ends it


if __name__ == "__main__":
    main(*sys.argv[1:])
