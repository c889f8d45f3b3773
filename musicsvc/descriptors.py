"""Files and folders by their descriptors: created, opened for a `with` block, and synced to disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open a file or folder for the `with` block, and yield its descriptor. Only its owner may use a created one."""
    descriptor = open_or_create(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_or_create(path: Path, flags: int = os.O_CREAT | os.O_RDWR) -> int:
    """Open a file and return its descriptor. If the flags say so, create a missing one, as `create` does."""
    if flags & os.O_CREAT:
        with suppress(FileExistsError):
            os.close(create(path))
    return os.open(path, flags, 0o600)


def create(path: Path, like: Path | None = None) -> int:
    """Create a file that only its owner can use, and open it. `like`: as of `hand_over`. Raises FileExistsError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    hand_over(descriptor, path.parent, like or path.parent)
    return descriptor


def make_folder(folder: Path) -> None:
    """Create a folder that only its owner can use, if it is missing, and those above it."""
    if not folder.is_dir():
        folder.mkdir(0o700, parents=True, exist_ok=True)
        with opened(folder, os.O_DIRECTORY | os.O_NOFOLLOW) as made:
            hand_over(made, folder.parent, folder.parent)


def hand_over(descriptor: int, parent: Path, like: Path) -> None:
    """Give what root has created in `parent` to the owner of this folder, if the file `like` belongs to them, too."""
    owner = parent.stat()
    if os.geteuid() == 0 and like.stat().st_uid == owner.st_uid:
        with suppress(OSError):  # root of a container, or on a network file system
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def sync(path: Path) -> None:
    """Sync a file or folder to disk."""
    with opened(path) as descriptor:
        os.fsync(descriptor)
