"""Files and folders by their descriptors: opened for a `with` block, and synced to disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open a file or folder for the `with` block, and yield its descriptor. Only its owner may use a created one."""
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Sync a file or folder to disk."""
    with opened(path) as descriptor:
        os.fsync(descriptor)
