"""Who uses a SQLite database: every open store holds a shared lock, and whoever replaces or migrates it shuts them out.

The locks are those of the system on small files beside the database; they are gone with the process that holds them,
however it ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from musicsvc.errors import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_SECONDS = 5.0  # of a user, while a small database is migrated
SHORT_PATIENCE_SECONDS = 1.0  # of who wants it alone, for commands that are about to end
POLL_SECONDS = 0.02


class Occupancy:
    """One use of the database, until it is released."""

    def __init__(self, descriptor: int | None) -> None:
        """`descriptor`: of the lock, None where there is none to hold."""
        self._descriptor = descriptor
        self._process = os.getpid()

    def release(self) -> None:
        """Let others have the database; harmless when repeated."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        # A child shares the lock: only the process that took it gives it back.
        if os.getpid() == self._process:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def lock_file(path: Path) -> Path:
    """The file whose lock tells who uses the database."""
    place = path.resolve()
    return place.with_name(place.name + ".in-use")


def enter(path: Path) -> Occupancy:
    """Use the database beside others. Raises Failure while somebody has it alone.

    Without a lock where the disk lets us make none: reading from a read-only disk goes on.
    """
    try:
        descriptor = _opened(lock_file(path))
    except OSError:
        return Occupancy(None)
    taken = True
    with suppress(OSError):  # a file system without locks
        taken = _taken(descriptor, fcntl.LOCK_SH, PATIENCE_SECONDS)
    if not taken:
        os.close(descriptor)
        raise Failure(f"The database {path} is being restored or migrated. Try again when that is done.")
    return Occupancy(descriptor)


@contextmanager
def alone(path: Path, patience: float = SHORT_PATIENCE_SECONDS) -> Iterator[None]:
    """Have the database for oneself. Raises Failure where a server or a command uses it still."""
    try:
        descriptor = _opened(lock_file(path))
    except OSError as error:
        raise Failure(f"The database {path} cannot be locked: {error.strerror}.") from None
    try:
        if not _taken(descriptor, fcntl.LOCK_EX, patience):
            raise Failure(in_use(path))
        yield
    finally:
        os.close(descriptor)


def in_use(path: Path) -> str:
    """What is told to whoever needs the database for himself."""
    return f"The database {path} is in use by a server or another command. Stop it, then run this again."


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Migrate or restore the database; another one that does so is waited for however long it takes."""
    place = path.resolve()
    descriptor = os.open(place.with_name(place.name + ".migrating"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        return os.open(path, os.O_RDONLY)  # a lock needs no more


def _taken(descriptor: int, kind: int, patience: float) -> bool:
    """Take the lock, waiting so long for it; whether it is ours."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        else:
            return True
