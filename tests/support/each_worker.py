"""Wait until every worker process of a server meets a condition. Which worker accepts a connection is up to chance."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path

from tests.support.program import Program
from tests.support.raw_connection import PATIENCE, Wire, connected
from tests.support.waiting import until

SOCKETS = Path("/proc/net/tcp")
AT_ONCE = 8


async def until_each_worker(
    program: Program, workers: int, holds: Callable[[Wire], Awaitable[bool]], tls: ssl.SSLContext | None = None
) -> None:
    """Open connections until `holds` was true for a connection to each of the program's `workers`."""
    if workers > 1:
        await until(lambda: len(program.workers) == workers)
    waiting = set(program.workers) if workers > 1 else {program.process.pid}

    async def ask() -> None:
        async with connected(program.root, tls) as wire:
            if await holds(wire):
                waiting.discard(_accepted_by(wire.port, waiting))
            wire.reset()

    async with asyncio.timeout(PATIENCE):
        while waiting:
            # One connection after the other, the same worker might accept them all.
            await asyncio.gather(*(ask() for _ in range(AT_ONCE)))


def _accepted_by(port: int, pids: Collection[int]) -> int:
    """Return which of these processes has the connection from this port, or 0 if none has."""
    if len(pids) == 1 and not SOCKETS.exists():  # not Linux
        return next(iter(pids))
    rows = (line.split() for line in SOCKETS.read_text("utf-8").splitlines()[1:])
    links = {f"socket:[{row[9]}]" for row in rows if int(row[2].rpartition(":")[2], 16) == port}
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed in the meantime
                if str(entry.readlink()) in links:
                    return pid
    return 0
