"""Effect of slow clients, of idle connections and of clients that never read on an honest client, and memory.

    python benchmarks/connections.py [--only slow|idle|unread] [--clients 1000] [--idle 5000] [--readers 6] [--scale 1]
        [--seconds 40] [--patience 1.0] [--transport plain|tls|both] [--late 0.25]

*slow*: a quarter each never finish their handshake (with plain HTTP they send nothing), their head or their body, or
read nothing; all reconnect when they are disconnected. `--patience` makes the timeouts shorter, to a second at least.
*idle*: clients that send one request and keep their connection. *unread*: each reader has a token, requests the largest
page that it can get (100 collections of 500 tracks with long descriptions; 100 albums of 1,000 tracks, 760 KB each) and
reads only its beginning. Exit 1 if a guarantee is broken: the honest p99 is at most 250 ms, memory grows by at most 128
MiB (idle TLS connections excepted), each slow client is disconnected within its timeout, idle ones stay.
"""

import argparse
import asyncio
import re
import socket
import ssl
import sys
import time
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

import harness
from clients import LENGTH, Stage, compare, raw, receive, until_closed
from harness import MEBIBYTE, Checkout

from musicsvc.server.process import resources

TRANSPORTS = {"plain": [False], "tls": [True], "both": [False, True]}  # with TLS or not
DEADLINES = {"handshake": 5.0, "head": 10.0, "body": 15.0, "write": 30.0, "keepalive": 15.0}
# Allowed beyond a timeout: the two seconds in which the rest of a request is still read, and the time to notice.
GRACE_SECONDS = {"handshake": 1.5, "head": 3.5, "body": 3.5, "reader": 3.5}
KEPT_SECONDS = 600
LONG = ("GET /docs/swagger-ui-bundle.js", "POST /api/v1/insights/export/csv", "GET /api/v1/albums?perPage=100")
EXPORT = b'{"type":"plays","period":"1-year"}'
HEAD = "{} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n"
GREETING = b"\x16\x03\x01\x02\x00\x01\x00"
LARGE = 64 * 1024
LATE = 0.25  # seconds that the honest p99 may take
DRIP_SECONDS = 1.0
BUSY, BUSY_SECONDS = "503", 5.0  # a client that gets 503 reconnects slowly, too
SPREAD_SECONDS = 10.0  # over which a thousand connect, because they are slow and no flood
SIZES = (100, 21)  # rows of a page that nobody reads; the second if the first is refused
PATIENCE = 30.0  # seconds: a busy machine is slow to build the first page


def main() -> int:
    """Measure. Return the exit code."""
    parser = harness.parser(
        __doc__, clients=1000, idle=5000, readers=6, scale=1.0, seconds=40.0, patience=1.0, late=0.25
    )
    parser.add_argument("--transport", choices=TRANSPORTS, default="both")
    given = parser.parse_args()
    resources.raise_file_limit()
    broken = []
    with harness.place(given) as folder:
        checkout = harness.checkouts(given)[-1]
        for tls in TRANSPORTS[given.transport]:
            for kind, measure in {"slow": slow, "idle": idle}.items():
                if re.search(given.only, kind):
                    print(f"{kind}, {'TLS' if tls else 'plain HTTP'}:")
                    broken += measure(checkout, folder, given, tls=tls)
        for world in ("collections", "albums"):
            if re.search(given.only, f"unread {world}"):
                print(f"unread {world}:")
                broken += unread(checkout, folder, given, world)
    return harness.say(broken)


def slow(checkout: Checkout, folder: Path, given: argparse.Namespace, *, tls: bool) -> list[str]:
    """Measure slow clients. Return the broken guarantees."""
    times = {name: max(1.0, seconds * given.patience) for name, seconds in DEADLINES.items()}
    settings = {f"server.{name}_timeout": seconds for name, seconds in times.items()}
    with harness.running(checkout, harness.database(checkout, folder, "small"), settings, tls=tls) as server:
        crowd = dawdle, server.port, server.token, server.trusted, given.clients
        (lives, answers), broken = compare(server, given.seconds, given.late, *crowd)
    limits = {"head": times["head"], "body": times["body"], "reader": times["write"]}
    limits["handshake"] = times["handshake"] if tls else times["head"]
    for kind, limit in limits.items():
        lasted = lives.get(kind, [])
        if not lasted:
            broken.append(f"no {kind} was cut")
            continue
        statuses = ", ".join(f"{status or 'no response'} {count}" for status, count in answers[kind].items())
        print(
            f"  {kind}: {len(lasted)} cut after {min(lasted):.1f} to {max(lasted):.1f} s (limit {limit:g}); {statuses}"
        )
        if max(lasted) > limit + GRACE_SECONDS[kind]:
            broken.append(f"a slow {kind} lived {max(lasted):.1f} s")
    return broken


class Slow:
    """Slow clients, a quarter of each kind, their lifetimes and the responses to them."""

    def __init__(self, port: int, token: str, trusted: str) -> None:
        self._port = port
        self._token = token
        self._tls = ssl.create_default_context(cafile=trusted) if trusted else None
        self.lives: dict[str, list[float]] = defaultdict(list)
        self.answers: dict[str, Counter[str]] = defaultdict(Counter)

    async def live(self, number: int, wait: float) -> None:
        """Run one client for ever."""
        await asyncio.sleep(wait)
        kind = list(GRACE_SECONDS)[number % len(GRACE_SECONDS)]
        while True:
            began = time.perf_counter()
            try:
                answer = await self._once(kind, number // len(GRACE_SECONDS))
            except OSError as error:
                answer = type(error).__name__
            self.answers[kind][answer] += 1
            self.lives[kind].append(time.perf_counter() - began)
            await asyncio.sleep(BUSY_SECONDS if answer == BUSY else 0.1)

    async def _once(self, kind: str, number: int) -> str:
        """Connect and be slow until the end. Return the status of the response, empty without one."""
        line = socket.socket()
        line.setblocking(False)  # noqa: FBT003 - the library's signature
        if kind == "reader":
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", self._port))
        tls = None if kind == "handshake" else self._tls
        name = "127.0.0.1" if tls else None
        reader, writer = await asyncio.open_connection(sock=line, ssl=tls, server_hostname=name, limit=1024)
        try:
            writer.write(self._beginning(kind, number))
            if kind == "reader":
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                await until_closed(line)
                return ""
            drip = asyncio.create_task(self._drip(writer, kind))
            first = await reader.readline()
            drip.cancel()
            return (first.split() or [b"", b""])[1].decode()
        finally:
            writer.close()

    def _beginning(self, kind: str, number: int) -> bytes:
        if kind == "handshake":
            return GREETING if self._tls else b""
        if kind == "head":
            return HEAD.format("GET /", self._token).encode() + b"X-Slow: "
        if kind == "body":
            head = HEAD.format("POST /api/v1/artists", self._token) + "Content-Length: 1000000\r\n\r\n"
            return head.encode() + b" " * (LARGE if number % 2 else 10)
        method, _, path = LONG[number % len(LONG)].partition(" ")
        return raw(path, self._port, token=self._token, method=method, body=EXPORT if method == "POST" else b"")

    async def _drip(self, writer: asyncio.StreamWriter, kind: str) -> None:
        await asyncio.sleep(DRIP_SECONDS)
        while kind != "handshake" and not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(DRIP_SECONDS)


async def dawdle(stage: Stage, port: int, token: str, trusted: str, count: int) -> tuple[object, object]:
    """Be slow until the end. Return the lifetimes and the statuses by kind."""
    clients = Slow(port, token, trusted)
    over = SPREAD_SECONDS * min(1.0, count / 1000)
    alive = asyncio.create_task(stage.run(*(clients.live(number, over * number / count) for number in range(count))))
    await asyncio.sleep(over + 0.5)
    stage.ready(f"{count} slow ones")
    await alive
    return dict(clients.lives), dict(clients.answers)


def idle(checkout: Checkout, folder: Path, given: argparse.Namespace, *, tls: bool) -> list[str]:
    """Measure idle connections. Return the broken guarantees."""
    if resources.max_connections() < given.idle:
        sys.exit(f"the descriptor limit (ulimit -Hn) leaves room for {resources.max_connections()} connections only")
    settings = {"server.keepalive_timeout": KEPT_SECONDS}
    with harness.running(checkout, harness.database(checkout, folder, "small"), settings, tls=tls) as server:
        crowd = keep, server.port, server.token, server.trusted, given.idle
        left, broken = compare(server, given.seconds, given.late, *crowd, memory=not tls)
    return broken + ([f"{given.idle - left} were not kept"] if left < given.idle else [])


async def keep(stage: Stage, port: int, token: str, trusted: str, count: int) -> int:
    """Send a request over each connection, and keep them until the end. Return how many are open."""
    resources.raise_file_limit()
    tls = ssl.create_default_context(cafile=trusted) if trusted else None
    lines = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        writer.write(raw("/api/v1/albums?perPage=1", port, token=token))
        await receive(reader)
        lines.append((reader, writer))
    stage.ready(f"{count} idle connections")
    await stage.ended.wait()
    return sum(not reader.at_eof() and not writer.is_closing() for reader, writer in lines)


def unread(checkout: Checkout, folder: Path, given: argparse.Namespace, world: str) -> list[str]:
    """Measure clients that never read. Return the broken guarantees."""
    base = harness.database(checkout, folder, world, round(100 * given.scale), given.readers)
    with harness.running(checkout, base) as server:
        begun, broken = compare(server, given.seconds, given.late, read_nothing, server.port, server.filled)
    print(f"  responses that nobody read: {begun}")
    return broken + ([] if begun else ["nobody was answered"])


async def read_nothing(stage: Stage, port: int, readers: list[tuple[str, str]]) -> dict[str, int]:
    """Read nothing until the end. Return how many responses of which size began."""
    begun: Counter[str] = Counter()

    async def one(token: str, path: str) -> None:
        while True:
            for size in SIZES:
                if await begins(port, token, f"{path}?perPage={size}", begun):
                    break
            await asyncio.sleep(0.5)

    alive = asyncio.create_task(stage.run(*(one(*reader) for reader in readers)))
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while not begun:  # noqa: ASYNC110 - counted by the clients
                await asyncio.sleep(0.1)
    stage.ready(f"{len(readers)} that read nothing")
    await alive
    return dict(begun)


async def begins(port: int, token: str, target: str, begun: Counter[str]) -> bool:
    """Return whether the response began, once the server has disconnected."""
    loop = asyncio.get_running_loop()
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.setblocking(False)  # noqa: FBT003 - the library's signature
        try:
            await loop.sock_connect(line, ("127.0.0.1", port))
            await loop.sock_sendall(line, raw(target, port, token=token))
            head = await loop.sock_recv(line, 1024)
            if head.split(b" ", 2)[1:2] != [b"200"]:
                return False
            size = LENGTH.search(head)
            begun[f"{int(size[1]) / MEBIBYTE if size else 0:.1f} MiB"] += 1
            await until_closed(line)
        except OSError:
            return False
        return True


if __name__ == "__main__":
    sys.exit(main())
