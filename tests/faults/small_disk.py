"""A mounted file system of a few megabytes, which tests can fill; they are skipped if it cannot be mounted."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.program import until

MEGABYTES = 32
BLOCK = 4096
INODES = 2000  # a database of PostgreSQL takes about half of them


class SmallDisk:
    """The disk, mounted on a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Fill the disk."""
        with self._filler.open("ab", buffering=0) as file:
            size = 1024 * 1024
            while size >= BLOCK:
                try:
                    # Smaller writes use the space that a large one left.
                    file.write(bytes(size))
                except OSError:
                    size //= 2

    def use_inodes(self) -> None:
        """Create files until the disk has no inode left."""
        self._filler.touch()
        many = self.folder / "many"
        many.mkdir()
        with suppress(OSError):
            for number in range(INODES):
                (many / f"{number}").touch()

    def mount(self, mode: str) -> None:
        """Make the disk read-only (`ro`) or writable (`rw`). Files of a killed process are open for a moment longer."""
        command = ["mount", "-o", f"remount,{mode}", str(self.folder)]
        until(lambda: not subprocess.run(command, check=False).returncode)

    def empty(self) -> None:
        """Free the space again."""
        self._filler.unlink(missing_ok=True)


@contextmanager
def mounted(folder: Path) -> Iterator[SmallDisk]:
    """Mount a small disk on this folder."""
    folder.mkdir()
    options = f"size={MEGABYTES}m,nr_inodes={INODES},mode=700"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
