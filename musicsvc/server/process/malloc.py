"""Memory that is free goes back to the system, and what stays for ever is not looked at again and again."""

from __future__ import annotations

import ctypes
import gc
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


def keep_what_stands() -> None:
    """Take what a started process holds out of the search for garbage, during which nobody is answered."""
    gc.collect()
    gc.freeze()
