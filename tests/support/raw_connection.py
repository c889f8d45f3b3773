"""Raw connections to a server, for bytes that HTTP clients do not send."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from multidict import CIMultiDict

from tests.support.serving import Answer

PATIENCE = 30.0  # seconds; on a busy machine everything takes longer
BODYLESS = {100, 204, 304}


class Wire:
    """A connection that sends bytes and reads answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def port(self) -> int:
        """The local port of the connection."""
        found: int = self._writer.get_extra_info("sockname")[1]
        return found

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate of the server, over TLS."""
        found: dict[str, Any] = self._writer.get_extra_info("peercert")
        return found

    async def encrypt(self, tls: ssl.SSLContext) -> None:
        """Begin TLS on an open connection."""
        await self._writer.start_tls(tls, server_hostname="127.0.0.1")

    async def send(self, raw: bytes) -> None:
        self._writer.write(raw)
        await self._writer.drain()

    def end(self) -> None:
        """Close the sending half; answers can still be read."""
        self._writer.write_eof()

    def reset(self) -> None:
        """Abort the connection."""
        self._writer.transport.abort()

    async def answer(self, *, head: bool = False) -> Answer:
        """Read the next answer; `head`: it answers a HEAD request and has no body."""
        raw, body = await self.answer_bytes(head=head)
        headers: CIMultiDict[str] = CIMultiDict()
        first, *lines = raw.decode().splitlines()
        for line in filter(None, lines):
            name, _, value = line.partition(": ")
            headers.add(name, value)
        return Answer(int(first.split()[1]), headers, body)

    async def answer_bytes(self, *, head: bool = False) -> tuple[bytes, bytes]:
        """Read the next answer, in two parts; `head`: it answers a HEAD request and has no body."""
        async with asyncio.timeout(PATIENCE):
            raw = await self._reader.readuntil(b"\r\n\r\n")
            if head or int(raw.split(None, 2)[1]) in BODYLESS:
                return raw, b""
            length = re.search(rb"(?i)\r\nContent-Length: (\d+)\r\n", raw)
            assert length is not None, raw
            return raw, await self._reader.readexactly(int(length[1]))

    async def rest(self) -> bytes:
        """Read until the server closes the connection."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self._reader.read()
            except ConnectionError:
                return b""


@asynccontextmanager
async def connected(root: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[Wire]:
    """Connect to the server at this address."""
    host, port = re.fullmatch(r"https?://\[?([^\]]*?)\]?:(\d+)", root).groups()  # type: ignore[union-attr]
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


@asynccontextmanager
async def not_reading(root: str, raw: bytes, room: int = 4096) -> AsyncIterator[socket.socket]:
    """Open a connection with a small receive buffer that has sent these bytes and reads nothing."""
    host, port = root.rpartition("/")[2].split(":")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, (host, int(port)))
        await loop.sock_sendall(client, raw)
        yield client


async def status(wire: Wire, method: str, target: str, token: str | None = None) -> int:
    """Send one request over the connection; return the status."""
    await wire.send(request(method, target, *([f"Authorization: Bearer {token}"] if token else [])))
    return (await wire.answer()).status


async def in_flight(root: str, count: int) -> None:
    """Wait until this number of requests is in progress, beside the one for the metrics."""
    shown, body = f"\nmusicsvc_requests_in_flight {count + 1}.0\n", ""
    async with asyncio.timeout(PATIENCE), connected(root) as wire:
        while shown not in body:
            await wire.send(request("GET", "/metrics"))
            body = (await wire.answer()).body.decode()


async def settled(holds: Callable[[], object]) -> None:
    """Wait until the condition holds, while the event loop runs."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - conditions of aiohttp have no event
            await asyncio.sleep(0.005)


def request(method: str, target: str, *headers: str, body: bytes = b"") -> bytes:
    """Return the bytes of a request, with a Content-Length unless a header sets the framing."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *headers]
    if body and not any(line.lower().startswith(("content-length:", "transfer-encoding:")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body


def chunked(*chunks: bytes) -> bytes:
    """Return a chunked body."""
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
