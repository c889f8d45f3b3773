"""How many files and connections the system lets a process have open."""

from __future__ import annotations

from contextlib import suppress

try:
    import resource
except ImportError:  # not there on Windows, which has no such limit
    resource = None  # type: ignore[assignment]

PLENTY = 65_536  # where the system names no limit, or would go further than anybody needs
KEPT_BACK = 256  # for the database, its files, logs, and answers that are sent from files


def raise_limit() -> None:
    """Take what the system allows, instead of what it gives by default."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, PLENTY) if hard != resource.RLIM_INFINITY else PLENTY
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def for_connections() -> int:
    """How many connections this process can have, with files beside them."""
    if resource is None:
        return PLENTY
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft - KEPT_BACK, soft // 2) if soft != resource.RLIM_INFINITY else PLENTY
