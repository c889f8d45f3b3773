"""Room that is kept on the disk for what must be written even when it is full: a file beside the database to give up.

Who needs room gives up a slice of it and takes back afterwards what was not used.
"""

from __future__ import annotations

import math
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


def told(size: int) -> str:
    """So many bytes in megabytes, rounded up: who gives so much has given enough."""
    return f"{math.ceil(size / 100_000) / 10:,.1f}"


class Ballast:
    """The file of one database; no method fails."""

    def __init__(self, database: Path) -> None:
        self._path = database.resolve().with_name(NAME)

    def keep(self) -> str:
        """Make it whole, where there is room to spare; what keeps us from it, empty where it is whole."""
        try:
            wanting = self.wanting()
            if wanting == 0 and self._size() < SIZE:
                self._grow()
        except OSError as error:
            return f"{self._path} cannot be made, and revocations may fail on a full disk: {error.strerror}."
        if not wanting:
            return ""
        return (
            f"There is no room for {self._path}, and revocations may fail on a full disk."
            f" Give the disk {told(wanting)} MB more room."
        )

    def wanting(self) -> int:
        """Bytes that the disk would have to have free beyond what it has, so that it is made whole. Raises OSError."""
        missing = SIZE - self._size()
        return max(missing + SPARE - shutil.disk_usage(self._path.parent).free, 0) if missing > 0 else 0

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
