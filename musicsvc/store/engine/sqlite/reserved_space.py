"""A file that reserves disk space. On a full disk, it is shortened to make room for urgent writes, then refilled."""

import math
import os
import shutil
from contextlib import suppress
from pathlib import Path

from musicsvc import descriptors
from musicsvc.store.engine.sqlite.files import size

NAME = "ballast"
SIZE = 4 * 1024 * 1024
SLICE = SIZE // 8
CHUNK = 64 * 1024
SPARE = 3 * SIZE  # the free space that must remain on the disk after the file was filled


def megabytes(size: int) -> str:
    """Return the text for `size` bytes in megabytes, rounded up to one decimal, such as `4.2`."""
    return f"{math.ceil(size / 100_000) / 10:,.1f}"


class ReservedSpace:
    """The file that reserves disk space for one database. Only the method `missing` raises OSError."""

    def __init__(self, database: Path) -> None:
        self._path = Path(os.path.realpath(database)).with_name(NAME)

    def fill(self) -> str:
        """Grow the file to 4 MiB. Return an error message if the disk lacks the space, else an empty string."""
        try:
            missing = self.missing()
            if missing == 0 and size(self._path) < SIZE:
                self._grow()
        except OSError as error:
            return f"{self._path} cannot be created, and revoking tokens may fail on a full disk: {error.strerror}."
        if not missing:
            return ""
        return (
            f"There is no room for {self._path}, and revoking tokens may fail on a full disk."
            f" Free another {megabytes(missing)} MB on this disk."
        )

    def missing(self) -> int:
        """Return how many bytes must be freed on the disk for `fill` to succeed. Raises OSError if that is unknown."""
        missing = SIZE - size(self._path)
        return max(missing + SPARE - shutil.disk_usage(self._path.parent).free, 0) if missing > 0 else 0

    def release(self) -> bool:
        try:
            with descriptors.opened(self._path, os.O_RDWR | os.O_NOFOLLOW) as descriptor:
                reserved = os.fstat(descriptor).st_size
                os.ftruncate(descriptor, max(reserved - SLICE, 0))
                os.fsync(descriptor)  # some file systems release the space only after a sync
        except OSError:
            return False
        return reserved > 0

    def refill(self) -> None:
        """Grow the file to 4 MiB, or as far as the disk allows."""
        with suppress(OSError):
            self._grow()

    def _grow(self) -> None:
        """Append random bytes up to a size of 4 MiB: a file system may store zeros without using disk space."""
        with descriptors.opened(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW) as descriptor:
            while (missing := SIZE - os.fstat(descriptor).st_size) > 0:
                os.write(descriptor, os.urandom(min(missing, CHUNK)))
            os.fsync(descriptor)
