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


def make_folder(folder: Path, mode: int = 0o700) -> None:
    """Create a folder that only its owner can use, if it is missing, and those above it."""
    if folder.is_dir():
        return
    make_folder(folder.parent, 0o777)
    # By its descriptor, which stays the same if somebody replaces the folder by a link meanwhile.
    with opened(folder.parent, os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)) as parent:
        try:
            os.mkdir(folder.name, mode, dir_fd=parent)
        except FileExistsError:
            if not folder.is_dir():
                raise
            return
        made = os.open(folder.name, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            hand_over(made, parent, parent)
        finally:
            os.close(made)


def hand_over(descriptor: int, parent: Path | int, like: Path | int) -> None:
    """Give what root has created in `parent` to the owner of this folder, if the file `like` belongs to them, too."""
    owner, owned = (os.stat(each) for each in (parent, like))  # noqa: PTH116 - also of descriptors
    if os.geteuid() == 0 and owned.st_uid == owner.st_uid:
        with suppress(OSError):  # root of a container, or on a network file system
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def sync(path: Path) -> None:
    """Sync a file or folder to disk."""
    with opened(path) as descriptor:
        os.fsync(descriptor)
