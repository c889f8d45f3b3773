"""Room that is kept on the disk for what must be written even when it is full: a file beside the database to give up.

Who needs room gives up a slice of it and takes back afterwards what was not used.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAME = "ballast"
SIZE = 4 * 1024 * 1024
SLICE = SIZE // 8
CHUNK = 64 * 1024
SPARE = 3 * SIZE  # what must be free beyond it before it is made: others need the last of the disk more


class Ballast:
    """The file of one database; no method fails."""

    def __init__(self, database: Path) -> None:
        self._path = database.resolve().with_name(NAME)

    def keep(self) -> None:
        """Make it whole, where there is room to spare."""
        with suppress(OSError):
            missing = SIZE - self._size()
            if missing > 0 and shutil.disk_usage(self._path.parent).free >= missing + SPARE:
                self._grow()

    def release(self) -> bool:
        """Give up a slice; whether there was one."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            size = os.fstat(descriptor).st_size
            os.ftruncate(descriptor, max(size - SLICE, 0))
            os.fsync(descriptor)  # some file systems give the room away only then
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return size > 0

    def refill(self) -> None:
        """Take back what was given up and is free still."""
        with suppress(OSError):
            self._grow()

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def _grow(self) -> None:
        """Add to it until it is whole; OSError where the disk is full. Zeros might be kept without taking room."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        try:
            while (missing := SIZE - os.fstat(descriptor).st_size) > 0:
                os.write(descriptor, os.urandom(min(missing, CHUNK)))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
