"""Memory that is free goes back to the system: without this, what slow clients have held stays with the process."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

M_MMAP_THRESHOLD = -3  # of malloc.h
LARGE = 64 * 1024


def give_back_large() -> None:
    """Have blocks of 64 KiB and more, such as a TLS connection's buffer, given back as soon as they are free.

    By itself glibc does so from 128 KiB on, and no more once the first such block was freed.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)
