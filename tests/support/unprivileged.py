"""A thread without root's right to read and write every file."""

import ctypes
import os
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
VERSION = 0x2008_0522  # of the structures below, in linux/capability.h
RIGHTS = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


def is_possible() -> bool:
    """Return whether this user has no such right, or can give it up (Linux)."""
    return os.geteuid() != 0 or hasattr(ctypes.CDLL(None), "capset")


def run_unprivileged(work: Callable[[], T]) -> T:
    """Run `work` in a new thread, which has the rights of a user who is not root, like the threads that it starts."""
    with ThreadPoolExecutor(1, initializer=_give_up if os.geteuid() == 0 else None) as threads:
        return threads.submit(work).result()


def _give_up() -> None:
    """Take the rights from this thread, for good; Linux has them per thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = struct.pack("=Ii", VERSION, 0), ctypes.create_string_buffer(struct.calcsize("=6I"))
    if libc.capget(header, data):
        raise OSError(ctypes.get_errno(), "capget")
    low = [value & ~RIGHTS for value in struct.unpack("=3I", data.raw[:12])]
    if libc.capset(header, struct.pack("=3I", *low) + data.raw[12:]):
        raise OSError(ctypes.get_errno(), "capset")
