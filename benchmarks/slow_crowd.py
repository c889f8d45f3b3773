"""Slow clients, a quarter of each kind, that reconnect when disconnected; prints their lifetimes as JSON.

    slow_crowd.py PORT TRUSTED CLIENTS SECONDS KINDS

head        a request whose head is sent a byte at a time
body        a POST whose body is sent a byte at a time; every other one sends 64 KiB of it at once
reader      requests something long (a page's script, an export, a list) and reads nothing of it
handshake   half a TLS ClientHello; without TLS: nothing
"""

import asyncio
import json
import socket
import ssl
import sys
import time
from collections import defaultdict

HEAD = "{} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n"
LONG = ("GET /docs/swagger-ui-bundle.js", "POST /api/v1/insights/export/csv", "GET /api/v1/albums?perPage=100")
EXPORT = '{"type":"plays","period":"1-year"}'
LARGE = 64 * 1024
GREETING = b"\x16\x03\x01\x02\x00\x01\x00"
DRIP_SECONDS = 1.0
BUSY, BUSY_SECONDS = "503", 5.0  # a client that gets 503 reconnects slowly, too
SPREAD_SECONDS = 10.0  # over which they connect, because they are slow and no flood


class Crowd:
    """The clients, and their lifetimes and answers."""

    def __init__(self, kinds: list[str], port: int, token: str, tls: ssl.SSLContext | None) -> None:
        self._kinds = kinds
        self._port = port
        self._token = token
        self._tls = tls
        self.lives: dict[str, list[float]] = defaultdict(list)
        self.answers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.connected = 0

    async def live(self, number: int, wait: float) -> None:
        """Run one client for ever."""
        await asyncio.sleep(wait)
        kind = self._kinds[number % len(self._kinds)]
        while True:
            began = time.perf_counter()
            try:
                answer = await self._once(kind, number // len(self._kinds))
            except OSError as error:
                answer = type(error).__name__
            self.answers[kind][answer] += 1
            self.lives[kind].append(time.perf_counter() - began)
            await asyncio.sleep(BUSY_SECONDS if answer == BUSY else 0.1)

    async def _once(self, kind: str, number: int) -> str:
        """Connect and be slow until the end; return the status of the answer, empty without one."""
        line = socket.socket()
        line.setblocking(False)  # noqa: FBT003 - the library's signature
        if kind == "reader":
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", self._port))
        tls = None if kind == "handshake" else self._tls
        name = "127.0.0.1" if tls else None
        reader, writer = await asyncio.open_connection(sock=line, ssl=tls, server_hostname=name, limit=1024)
        self.connected += 1
        try:
            writer.write(self._beginning(kind, number))
            if kind == "reader":
                return await self._unread(line, writer)
            drip = asyncio.create_task(self._drip(writer, kind))
            first = await reader.readline()
            drip.cancel()
            return (first.split() or [b"", b""])[1].decode()
        finally:
            self.connected -= 1
            writer.close()

    def _beginning(self, kind: str, number: int) -> bytes:
        if kind == "handshake":
            return GREETING if self._tls else b""
        if kind == "head":
            return HEAD.format("GET /", self._token).encode() + b"X-Slow: "
        if kind == "body":
            head = HEAD.format("POST /api/v1/artists", self._token) + "Content-Length: 1000000\r\n\r\n"
            return head.encode() + b" " * (LARGE if number % 2 else 10)
        target = LONG[number % len(LONG)]
        body = EXPORT if target.startswith("POST") else ""
        return f"{HEAD.format(target, self._token)}Content-Length: {len(body)}\r\n\r\n{body}".encode()

    async def _drip(self, writer: asyncio.StreamWriter, kind: str) -> None:
        await asyncio.sleep(DRIP_SECONDS)
        while kind != "handshake" and not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(DRIP_SECONDS)

    async def _unread(self, line: socket.socket, writer: asyncio.StreamWriter) -> str:
        """Read nothing until the server disconnects, which the system reports as an error."""
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        while not line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) and not ended(line):  # noqa: ASYNC110 - the system reports no event
            await asyncio.sleep(0.25)
        return ""


def ended(line: socket.socket) -> bool:
    """Whether the other side has closed or reset the connection (Linux)."""
    closed = {7, 8}  # CLOSE, CLOSE_WAIT
    return line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in closed


async def main() -> None:
    """Be slow for the given time; print a line when all clients are connected."""
    token = sys.stdin.readline().strip()
    port, trusted, clients, seconds, kinds = sys.argv[1:]
    crowd = Crowd(
        kinds.split(","), int(port), token, None if trusted == "-" else ssl.create_default_context(cafile=trusted)
    )
    count = int(clients)
    spread = SPREAD_SECONDS * min(1.0, count / 1000)
    alive = [asyncio.create_task(crowd.live(number, spread * number / count)) for number in range(count)]
    await asyncio.sleep(spread + 0.5)
    print(crowd.connected, flush=True)
    await asyncio.sleep(float(seconds))
    for task in alive:
        task.cancel()
    await asyncio.gather(*alive, return_exceptions=True)
    print(json.dumps({"lives": crowd.lives, "answers": crowd.answers}))


if __name__ == "__main__":
    asyncio.run(main())
