"""File locks between processes (flock). They protect a SQLite database in use from migrations and restores."""

import fcntl
import glob
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from musicsvc import descriptors
from musicsvc.errors import Failure

SHARED_TIMEOUT = 5.0  # seconds that a command waits while a small database is migrated
EXCLUSIVE_TIMEOUT = 1.0  # seconds that a migration waits for running commands to end
POLL_SECONDS = 0.02
SERVED = ".served-"


def acquire(descriptor: int, *, shared: bool = False, timeout: float | None = None, poll: float = POLL_SECONDS) -> bool:
    """Lock an open file, exclusively unless `shared` is set. Wait at most `timeout` seconds, or forever if None.

    Return False after the timeout, else True. Closing the file unlocks it. Raises OSError if locks are unsupported.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    if timeout is None:
        fcntl.flock(descriptor, kind)
        return True
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(poll)
        else:
            return True


class UseLock:
    """A shared lock that a process holds while it has a database open. It prevents migrations and restores."""

    def __init__(self, descriptor: int | None) -> None:
        """`descriptor` is the open, locked file, or None for an object that holds no lock."""
        self._descriptor = descriptor
        self._process = os.getpid()

    def release(self) -> None:
        """Release the lock. Does nothing if it was already released."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        # A forked child shares the lock: only the process that acquired it may release it.
        if os.getpid() == self._process:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def lock_file(path: Path) -> Path:
    path = Path(os.path.realpath(path))
    return path.with_name(path.name + ".in-use")


def use(path: Path) -> UseLock:
    """Lock the database against migrations and restores. Raises Failure if a migration or restore is in progress.

    If the lock file cannot be created, as on a read-only disk, return an object that holds no lock.
    """
    try:
        descriptor = _open(lock_file(path))
    except OSError:
        return UseLock(None)
    acquired = True
    with suppress(OSError):  # a file system without locks
        acquired = acquire(descriptor, shared=True, timeout=SHARED_TIMEOUT)
    if not acquired:
        os.close(descriptor)
        raise Failure(f"The database {path} is being restored or migrated. Try again when that is done.")
    return UseLock(descriptor)


@contextmanager
def exclusive(path: Path, timeout: float = EXCLUSIVE_TIMEOUT) -> Iterator[None]:
    """Lock the database exclusively for the `with` block. Raises Failure if others use it for `timeout` seconds."""
    try:
        descriptor = _open(lock_file(path))
    except OSError as error:
        raise Failure(f"The database {path} cannot be locked: {error.strerror}.") from None
    try:
        if not acquire(descriptor, timeout=timeout):
            raise Failure(in_use(path))
        yield
    finally:
        os.close(descriptor)


@contextmanager
def serving(place: Path, port: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that tells other programs the root URL of a running server, until the `with` block ends.

    `place`: the file of its database, or the name of another database in a folder. The function does nothing if no file
    can be written there, as on a read-only disk.
    """
    place = Path(os.path.realpath(place))
    file, draft = (place.with_name(f"{place.name}{suffix}") for suffix in (f"{SERVED}{port}", f".{os.getpid()}.new"))
    descriptor = None
    with suppress(OSError):
        # A file of its own, since a server that stops may still have that of this port.
        draft.unlink(missing_ok=True)
        descriptor = descriptors.create(draft)
        acquire(descriptor)
        draft.replace(file)

    def tell(root: str) -> None:
        if descriptor is not None:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, root.encode(), 0)

    try:
        yield tell
    finally:
        if descriptor is not None:
            with suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), file.stat()):
                    file.unlink()
            os.close(descriptor)


def served_at(place: Path, port: int) -> str | None:
    """Return the root URL of a server that runs at this place, or None if none does.

    Of several, it is the one with this port, else the one that started last.
    """
    found = []
    place = Path(os.path.realpath(place))
    for file in place.parent.glob(f"{glob.escape(place.name)}{SERVED}*"):
        with suppress(OSError, UnicodeDecodeError), file.open("rb") as opened:
            if not acquire(opened.fileno(), shared=True, timeout=0) and (root := opened.read().decode()):
                found.append((file.name.endswith(f"{SERVED}{port}"), os.fstat(opened.fileno()).st_mtime_ns, root))
    return max(found)[-1] if found else None


def in_use(path: Path) -> str:
    """Return the error message for a database that other processes have open."""
    return f"The database {path} is in use by a server or another command. Stop it, then run this again."


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Let one process at a time migrate or restore the database. Other processes wait until the `with` block ends."""
    path = Path(os.path.realpath(path))
    with descriptors.opened(path.with_name(path.name + ".migrating"), os.O_CREAT | os.O_RDWR) as descriptor:
        acquire(descriptor)
        yield


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process was first
            return descriptors.create(path)
    except OSError:
        pass
    return os.open(path, os.O_RDONLY)  # enough to lock it
