"""The system's limit on the open files of a process, which also limits its connections."""

from contextlib import suppress

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

PLENTY = 65_536  # used if the system has no limit or a larger one
RESERVED = 256  # for the database, its files, logs, and responses sent from files


def raise_limit() -> None:
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
