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
    place, lock = make(parent, SHARED_PREFIX)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(lock)


def make(parent: Path | None, prefix: str) -> tuple[Path, int]:
    """Create a folder and lock it, as a sign that it is in use by this process and those that it forks.

    Return it with the descriptor of the lock.
    """
    while True:
        place = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(place, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if place.exists():
                return place, lock
            os.close(lock)  # another process took it for one of a killed process, as it was not locked yet


def remove_leftovers(parent: Path, prefix: str = PREFIX) -> int:
    """Delete folders that no process uses, and return their number."""
    removed = 0
    for each in parent.glob(f"{prefix}*"):
        with suppress(OSError), descriptors.opened(each, os.O_DIRECTORY | os.O_NOFOLLOW) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(each)
            removed += 1
    return removed
