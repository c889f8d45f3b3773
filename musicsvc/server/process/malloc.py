"""Reduce the memory of a server process and the time of its garbage collection."""

import ctypes
import gc
import sys
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
# Bytes. SQLite allocates 84 KiB for each IN list and other temporary table; asking the system for them takes 80 µs.
# glibc's own threshold is 128 KiB, and rises when the first block above it is freed.
LARGE = 96 * 1024
KEPT = 1024 * 1024  # bytes at the end of each heap that malloc keeps for the next blocks; glibc keeps 128 KiB


def return_large_blocks() -> None:
    """Make malloc return freed blocks of 96 KiB and more, such as TLS buffers, to the system at once."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library other than glibc
            library = ctypes.CDLL(None)
            library.mallopt(M_MMAP_THRESHOLD, LARGE)
            library.mallopt(M_TRIM_THRESHOLD, KEPT)


def freeze_objects() -> None:
    """Exclude the objects that exist from garbage collection, because each collection delays requests."""
    gc.freeze()
