"""The memory of a server process, the time of its garbage collection, and its open files, which limit connections."""

import asyncio
import ctypes
import gc
import sys
from contextlib import suppress

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
# Bytes. SQLite allocates 84 KiB for each IN list and other temporary table; asking the system for them takes 80 µs.
# glibc's own threshold is 128 KiB, and rises when the first block above it is freed.
LARGE = 96 * 1024
KEPT = 1024 * 1024  # bytes at the end of each heap that malloc keeps for the next blocks; glibc keeps 128 KiB
PLENTY = 65_536  # used if the system has no limit or a larger one
RESERVED = 256  # for the database, its files, logs, and responses sent from files


def return_large_blocks() -> None:
    """Make malloc return freed blocks of 96 KiB and more, such as TLS buffers, to the system at once."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library other than glibc
            library = ctypes.CDLL(None)
            library.mallopt(M_MMAP_THRESHOLD, LARGE)
            library.mallopt(M_TRIM_THRESHOLD, KEPT)


async def return_free_memory() -> None:
    """Make malloc return the pages to the system that lie free between blocks in use."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library other than glibc
            await asyncio.to_thread(ctypes.CDLL(None).malloc_trim, 0)


def freeze_objects() -> None:
    """Exclude the objects that exist from garbage collection, because each collection delays requests."""
    gc.freeze()


def raise_file_limit() -> None:
    """Raise the soft limit on open files to the hard limit, but to no more than PLENTY files."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, PLENTY) if hard != resource.RLIM_INFINITY else PLENTY
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def max_connections() -> int:
    """Return how many connections this process can have open, given its limit on open files."""
    if resource is None:
        return PLENTY
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft - RESERVED, soft // 2) if soft != resource.RLIM_INFINITY else PLENTY
