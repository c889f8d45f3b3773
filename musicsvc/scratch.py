"""Private folders for temporary files. Those of a killed process are removed when a server or the next one starts."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from musicsvc import descriptors, environment

PREFIX = "musicsvc-"
SHARED_PREFIX = "musicsvc-scratch-"  # in the system's folder, where others may have what begins with "musicsvc-"
SYSTEM = ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108 - where libraries look for a writable folder


def ensure(parent: Path) -> None:
    """Make this process, its libraries and its children use `parent` if the system has no writable folder.

    So does a container whose only writable folder is that of the data. Does nothing if `parent` cannot be written.
    """
    given = environment.temporary_folder()
    if any(os.access(each, os.W_OK | os.X_OK) for each in (given or SYSTEM[0], *SYSTEM)):
        return
    with suppress(OSError):
        descriptors.make_folder(parent)
        tempfile.tempdir = str(parent)
        environment.set_temporary_folder(str(parent))


@contextmanager
def folder(parent: Path | None) -> Iterator[Path]:
    """Create a folder in `parent` for the `with` block. None: in the system's folder for temporary files."""
    if parent is not None:
        descriptors.make_folder(parent)
    else:
        remove_leftovers(Path(tempfile.gettempdir()), SHARED_PREFIX)
    with tempfile.TemporaryDirectory(prefix=SHARED_PREFIX, dir=parent) as name:
        lock = acquire(Path(name))
        try:
            yield Path(name)
        finally:
            os.close(lock)


def acquire(place: Path) -> int:
    """Lock the folder as a sign that it is in use, by this process and those that it forks. Return the descriptor."""
    lock = os.open(place, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def remove_leftovers(parent: Path, prefix: str = PREFIX) -> int:
    """Delete folders that no process uses, and return their number."""
    removed = 0
    for each in parent.glob(f"{prefix}*"):
        with suppress(OSError), descriptors.opened(each) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(each)
            removed += 1
    return removed
