"""Memory of a server process: freed blocks returned to the system, fewer objects for the garbage collector."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

M_MMAP_THRESHOLD = -3  # of malloc.h
LARGE = 64 * 1024


def return_large_blocks() -> None:
    """Return blocks of 64 KiB and more, such as the buffer of a TLS connection, to the system when they are freed.

    By default glibc does so from 128 KiB, and raises that limit once the first such block is freed.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


def freeze_startup_objects() -> None:
    """Exclude the objects of a started process from garbage collection, during which no request is answered."""
    gc.collect()
    gc.freeze()
