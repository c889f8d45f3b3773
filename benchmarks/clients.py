"""Clients: requests over persistent connections, an honest client, crowds in a process of their own."""

import asyncio
import math
import multiprocessing
import re
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple, Self, cast

import uvloop
from harness import MEBIBYTE, MOST_MEMORY, Server, Watch

CONNECTIONS = 16
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
SPAWN = multiprocessing.get_context("spawn")
PER_SECOND = 50  # of the honest client
PATIENCE = 10.0  # seconds it waits for a response
OWN_CONNECTION = 5
PATHS = (
    "/api/v1/albums?perPage=20",
    "/api/v1/tracks/1",
    "/api/v1/users/me",
    "/api/v1/producer-intelligence/insights/tracks/1",
    "/api/v1/playlists",
)
SERVER_FAULT = 500


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

    def __init__(
        self, requests: Iterable[bytes], times: list[float], heard: Callable[[bytes, int], None] | None = None
    ) -> None:
        self._requests = iter(requests)
        self._times = times
        self._heard = heard  # gets each head and the length of its body
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
            self._expected = end + 4 + self._take_head(bytes(self._received[:end]))
        if len(self._received) >= self._expected:
            self._times.append(time.perf_counter() - self._began)
            del self._received[: self._expected]
            self._expected = 0
            self._send()

    def _take_head(self, head: bytes) -> int:
        """Check the head of a response. Return the length of its body."""
        assert head[9:10] == b"2" or head[9:12] == b"304", head
        length = LENGTH.search(head)
        assert length or head[9:12] == b"304", head
        size = int(length[1]) if length and head[9:12] != b"304" else 0
        if self._heard:
            self._heard(head, size)
        return size

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))


async def converse(port: int, connection: Connection) -> None:
    """Open the connection, and return when all its requests are answered."""
    await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", port)
    await connection.done


async def send(port: int, requests: Sequence[bytes], connections: int = CONNECTIONS) -> list[float]:
    """Send the requests, distributed over the connections. Return the seconds that each took."""
    times: list[float] = []
    some = (requests[first::connections] for first in range(connections))
    await asyncio.gather(*(converse(port, Connection(each, times)) for each in some))
    return times


def cost(server: Server, work: Callable[[], Awaitable[Any]]) -> float:
    """Run the work. Return the CPU seconds of the server during it: never 0, which a few requests may show."""
    before = server.cpu()

    async def run() -> None:
        await work()

    uvloop.run(run())
    return max(server.cpu() - before, 1e-9)


def cost_each(server: Server, requests: Sequence[bytes], connections: int = CONNECTIONS) -> float:
    """Send the requests. Return the CPU time of the server for each, in µs."""
    return cost(server, lambda: send(server.port, requests, connections)) / len(requests) * 1e6


async def receive(reader: asyncio.StreamReader) -> int:
    """Read a response to its end. Return its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    assert length is not None, head
    await reader.readexactly(int(length[1]))
    return int(head.split(b" ", 2)[1])


def percentile(times: Sequence[float], percent: int) -> float:
    """Return a percentile of the times."""
    return sorted(times)[math.ceil(len(times) * percent / 100) - 1]


def percentiles(times: Sequence[float]) -> str:
    """Return the percentiles as text."""
    if not times:
        return "no response"
    middle, late = (percentile(times, each) * 1000 for each in (50, 99))
    return f"{len(times)} responses, p50 {middle:.1f} ms, p99 {late:.1f} ms, at most {max(times) * 1000:.1f} ms"


class Stage:
    """The end of the pipe between benchmark and crowd that the crowd has."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self.ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(pipe.fileno(), self._end)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pipe.fileno())
        self.ended.set()

    def ready(self, value: object = None) -> None:
        """Let the benchmark go on."""
        self._pipe.send(value)

    async def run(self, *clients: Coroutine[Any, Any, None]) -> list[str]:
        """Run the clients until the crowd shall end. Return the errors of those that ended before."""
        tasks = [asyncio.ensure_future(client) for client in clients]
        await self.ended.wait()
        for task in tasks:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        return [repr(each) for each in found if isinstance(each, Exception)]


class Crowd:
    """An async function of a Stage and these arguments, run in another process until it returns.

    `first` is what it told when it was ready, which this waits for.
    """

    def __init__(self, work: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
        self._pipe, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=_perform, args=(work, theirs, arguments), daemon=True)
        self._process.start()
        theirs.close()
        self.first = self._pipe.recv()

    def result(self) -> Any:
        """Ask it to end. Return its result."""
        self._pipe.send(None)
        found = self._pipe.recv()
        self._process.join()
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.join()


def _perform(work: Callable[..., Awaitable[Any]], pipe: Pipe, arguments: tuple[Any, ...]) -> None:
    async def perform() -> Any:
        return await work(Stage(pipe), *arguments)

    pipe.send(asyncio.run(perform()))


async def until_closed(line: socket.socket) -> None:
    """Read nothing until the server disconnects (Linux)."""
    closed = {7, 8}  # CLOSE, CLOSE_WAIT
    while not line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        if line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in closed:
            return
        await asyncio.sleep(0.25)


class Told(NamedTuple):
    """The seconds of the responses to an honest client, and the requests that failed."""

    times: list[float]
    failures: list[str]

    def broken(self, late: float) -> list[str]:
        """Return the broken guarantees: no failure, and no p99 above `late`."""
        found = [f"the honest client failed: {each}" for each in self.failures[:3]]
        return found + ["honest p99"] * (not self.times or percentile(self.times, 99) > late)


def honest(server: Server, seconds: float) -> Told:
    """Run an honest client in another process. Return what it was told."""
    with Crowd(_be_honest, server.port, server.token, server.trusted, seconds) as client:
        told: Told = client.result()
        return told


async def _be_honest(stage: Stage, port: int, token: str, trusted: str, seconds: float) -> Told:
    """Send fifty requests a second, every fifth over a connection of its own.

    A request's time begins when it is due, so that waiting is included; without a response, it is how long it waited.
    """
    tls = ssl.create_default_context(cafile=trusted) if trusted else None
    told = Told([], [])
    free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def exchange(path: str, *, own: bool) -> int:
        request = raw(path, port, token=token, more=["Connection: close"] * own)
        while True:
            kept = bool(free) and not own
            reader, writer = free.pop(0) if kept else await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            try:
                writer.write(request)
                status = await receive(reader)
            except (OSError, EOFError):
                if not kept:  # the server may have closed it meanwhile
                    raise
                continue
            if own:
                writer.close()
            else:
                free.append((reader, writer))
            return status

    async def ask(number: int, due: float) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                status = await exchange(PATHS[number % len(PATHS)], own=number % OWN_CONNECTION == 0)
        except (OSError, EOFError) as error:
            told.failures.append(repr(error))
            told.times.append(PATIENCE)
            return
        told.times.append(time.perf_counter() - due)
        told.failures.extend([str(status)] if status >= SERVER_FAULT else [])

    stage.ready()
    began, asked = time.perf_counter(), []
    for number in range(max(1, int(seconds * PER_SECOND))):
        due = began + number / PER_SECOND
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        asked.append(asyncio.create_task(ask(number, due)))
    await asyncio.gather(*asked)
    return told


def compare(server: Server, seconds: float, late: float, *crowd: Any, memory: bool = True) -> tuple[Any, list[str]]:
    """Measure honest responses without and with a crowd. Return the crowd's result and the broken guarantees."""
    alone = honest(server, min(10.0, seconds / 2))
    with Watch(server) as watch, Crowd(*crowd) as others:
        told = honest(server, seconds)
        found = others.result()
    print(f"  honest client alone: {percentiles(alone.times)}")
    print(f"  beside {others.first}: {percentiles(told.times)}")
    print(f"  memory: {watch.before / MEBIBYTE:.0f} MiB, at most {watch.more:.0f} MiB more", flush=True)
    over = ["memory"] if memory and watch.more > MOST_MEMORY else []
    return found, [*alone.failures, *told.broken(late), *over]
