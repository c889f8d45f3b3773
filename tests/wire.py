"""A raw connection to a server, for what HTTP clients cannot send."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from multidict import CIMultiDict

from tests.serving import Answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATIENCE = 5.0  # seconds


class Wire:
    """Bytes out, answers in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, raw: bytes) -> None:
        self._writer.write(raw)
        await self._writer.drain()

    def end(self) -> None:
        """Send nothing more; answers can still come."""
        self._writer.write_eof()

    async def answer(self, *, head: bool = False) -> Answer:
        """The next answer; `head`: it answers a HEAD request and has no body."""
        async with asyncio.timeout(PATIENCE):
            first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            parts = (line.partition(": ") for line in lines if line)
            headers = CIMultiDict([(name, value) for name, _, value in parts])
            status = int(first.split()[1])
            length = 0 if head or status in {100, 304} else int(headers["Content-Length"])
            return Answer(status, headers, await self._reader.readexactly(length))

    async def rest(self) -> bytes:
        """What comes until the server closes."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read()

    async def is_closed(self) -> bool:
        """Whether the server closes without another byte."""
        try:
            return await self.rest() == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def connected(root: str) -> AsyncIterator[Wire]:
    """A connection to the server at this address."""
    host, _, port = root.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


def request(method: str, target: str, *headers: str, body: bytes = b"") -> bytes:
    """A request's bytes; the body's length is added unless a header says how it is framed."""
    lines = [f"{method} {target} HTTP/1.1", "Host: music.test", *headers]
    if body and not any(line.lower().startswith(("content-length:", "transfer-encoding:")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body
