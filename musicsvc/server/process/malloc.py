"""Reduce the memory of a server process and the time of its garbage collection."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

M_MMAP_THRESHOLD = -3  # of malloc.h
LARGE = 64 * 1024  # bytes; glibc's own threshold is 128 KiB, and rises when the first block above it is freed


def return_large_blocks() -> None:
    """Make malloc return freed blocks of 64 KiB and more, such as TLS buffers, to the system at once."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library other than glibc
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


def freeze_objects() -> None:
    """Exclude the objects that exist from garbage collection, because each collection delays requests."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
