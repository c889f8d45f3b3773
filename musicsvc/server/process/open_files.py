"""The system's limit on the open files, and so the connections, of a process."""

from __future__ import annotations

from contextlib import suppress

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

PLENTY = 65_536  # in place of no limit or of a larger one
RESERVED = 256  # for the database, its files, logs, and answers sent from files


def raise_limit() -> None:
    """Raise the soft limit to the hard limit, at most to PLENTY."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, PLENTY) if hard != resource.RLIM_INFINITY else PLENTY
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def max_connections() -> int:
    """Return the number of connections that this process can have beside its files."""
    if resource is None:
        return PLENTY
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft - RESERVED, soft // 2) if soft != resource.RLIM_INFINITY else PLENTY
