"""Requests over keep-alive connections, and the CPU time that a server spends on them."""

import asyncio
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

CONNECTIONS = 16
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
CPU_TIME = 2  # the clock of a process that counts nanoseconds


def raw(
    path: str, port: int, *, token: str = "", method: str = "GET", body: bytes = b"", more: Sequence[str] = ()
) -> bytes:
    """Return the bytes of a request, with the header lines `more`."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *more]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection(asyncio.Protocol):
    """Sends requests one after the other, and records the seconds until each response is complete."""

    def __init__(self, requests: Iterable[bytes], times: list[float]) -> None:
        self._requests = iter(requests)
        self._times = times
        self._received = bytearray()
        self._expected = 0
        self._began = 0.0
        self._transport: asyncio.Transport | None = None
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has another base class
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self.done.set_result(None)
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._expected:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._received[:end])
            self._expected = end + 4 + self.take_head(head)
        if len(self._received) >= self._expected:
            self._times.append(time.perf_counter() - self._began)
            del self._received[: self._expected]
            self._expected = 0
            self._send()

    def take_head(self, head: bytes) -> int:
        """Check the head of a response. Return the length of its body."""
        assert head.startswith(b"HTTP/1.1 2"), head
        length = LENGTH.search(head)
        assert length is not None, head
        return int(length[1])

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))


async def send(port: int, requests: Sequence[bytes], connections: int = CONNECTIONS) -> list[float]:
    """Send the requests, distributed over the connections. Return the seconds that each took."""
    times: list[float] = []
    loop = asyncio.get_running_loop()

    async def one(some: Sequence[bytes]) -> None:
        _, protocol = await loop.create_connection(lambda: Connection(some, times), "127.0.0.1", port)
        await protocol.done

    await asyncio.gather(*(one(requests[first::connections]) for first in range(connections)))
    return times


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of all threads of a process so far, with those of ended threads (Linux)."""
    clock = ~pid << 3 | CPU_TIME  # as clock_getcpuclockid(3) returns it
    return time.clock_gettime(clock)


def cpu_since(before: float, *pids: int) -> float:
    """Return the CPU seconds of processes since they were `before` in sum: never 0, which a few requests may show."""
    return max(sum(map(cpu_seconds, pids)) - before, 1e-9)


def processes(pid: int) -> list[int]:
    """Return the ids of a process and of all its descendants (Linux)."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [
        pid,
        *(each for file in files for child in file.read_text("ascii").split() for each in processes(int(child))),
    ]
