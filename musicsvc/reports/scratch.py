"""Private folders for temporary files. Those of a process that was killed are removed when a server starts."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

PREFIX = "musicsvc-"
PRIVATE = 0o700


def prepare(parent: Path) -> None:
    """Create the folder for temporary files if it is missing. Raises OSError if that is impossible."""
    parent.mkdir(PRIVATE, parents=True, exist_ok=True)


@contextmanager
def folder(parent: Path | None) -> Iterator[Path]:
    """Create a folder in `parent` for the `with` block. None: in the system's folder for temporary files."""
    if parent is not None:
        prepare(parent)
    with TemporaryDirectory(prefix=PREFIX, dir=parent) as name:
        lock = os.open(name, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as a sign that the folder is in use
            yield Path(name)
        finally:
            os.close(lock)


def remove_leftovers(parent: Path) -> int:
    """Delete folders that no process uses, and return their number."""
    removed = 0
    for each in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(each, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(each)
                removed += 1
            finally:
                os.close(lock)
    return removed
