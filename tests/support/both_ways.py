"""Two servers over one database, one of which never answers early, and requests that both must answer the same.

Both get the same requests in the same order, and their clocks stand still, so that every byte is the same: also what
is left of a limit. Only the Date, request ids that a server makes, and the order of fields are put aside.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from ssl import SSLContext
from typing import NamedTuple, Self

from musicsvc.clock import CalendarClock, Clock
from musicsvc.config import Settings
from musicsvc.server.app import App
from musicsvc.store.engine.store import Store
from tests.support.raw_connection import Wire, connected, request
from tests.support.serving import ServiceServer

CHANGING = re.compile(rb"(\r\nDate: )[^\r]*")
OWN_ID = re.compile(rb"(\r\nX-Request-Id: )[0-9a-f]{24}(?=\r)")
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
ETAG = re.compile(rb"\r\nEtag: ([^\r]*)")
HELD = {200, 304}  # answers that are kept in memory
EARLY, LONG = "early", "the long way"


@dataclass(frozen=True)
class Form:
    """A form of a request, and the way that its answer takes if a token and the limits allow it.

    `{tag}` and `{gzip}` in a header stand for the entity tags of the plain answer. `parts`: the packets that the head
    comes in. `count`: how many requests come in one packet. `closes`: the server closes the connection.
    """

    way: str = EARLY
    headers: tuple[str, ...] = ()
    query: str = ""
    method: str = "GET"
    version: str = "1.1"
    origin: str = ""  # before the path
    body: bytes = b""
    parts: int = 1
    count: int = 1
    closes: bool = False

    def raw(self, target: str, more: Sequence[str], tag: str) -> bytes:
        """Return the bytes of a request with these further headers."""
        query = f"{'&' if '?' in target else '?'}{self.query}" if self.query else ""
        known = tag.strip('"').removesuffix("-gzip")
        lines = [line.replace("{tag}", f'"{known}"').replace("{gzip}", f'"{known}-gzip"') for line in self.headers]
        made = request(self.method, f"{self.origin}{target}{query}", *more, *lines, body=self.body)
        return made.replace(b"HTTP/1.1", f"HTTP/{self.version}".encode(), 1)


PLAIN = Form()


class Answered(NamedTuple):
    """The answers to the requests of one packet, without what changes, and how many were sent early."""

    answers: list[bytes]
    early: int

    @property
    def status(self) -> int:
        found = STATUS.match(self.answers[-1])
        assert found is not None
        return int(found[1])

    @property
    def tag(self) -> str:
        found = ETAG.search(self.answers[-1])
        return "" if found is None else found[1].decode()


class Way:
    """One of the two servers, with a connection that is kept open."""

    def __init__(self, server: ServiceServer, tls: SSLContext | None) -> None:
        assert server.service is not None
        self.app: App = server.service
        self.root = str(server.make_url("/").origin())
        self._tls = tls
        self._stack = AsyncExitStack()
        self._wire: Wire | None = None

    @property
    def answered(self) -> int:
        """The number of requests that were answered early."""
        return self.app.dispatcher.first_steps.answered

    def never_early(self) -> Self:
        """Let every request take the long way."""
        self.app.dispatcher.stages = replace(self.app.dispatcher.stages, offer=lambda *_: False)
        return self

    async def wire(self) -> Wire:
        """Return the open connection."""
        if self._wire is None:
            self._wire = await self._stack.enter_async_context(connected(self.root, self._tls))
        return self._wire

    async def close(self) -> None:
        self._wire = None
        await self._stack.aclose()

    async def send(self, raw: bytes, form: Form) -> None:
        wire = await self.wire()
        cut = len(raw) // 2 if form.parts > 1 else len(raw)
        await wire.send(raw[:cut] * form.count)
        if cut < len(raw):
            await asyncio.sleep(0.002)  # so that the parts come one by one
            await wire.send(raw[cut:])

    async def answers(self, form: Form) -> list[bytes]:
        """Read the answers to what was sent."""
        wire, found = await self.wire(), []
        for _ in range(form.count):
            head, body = await wire.answer_bytes(head=form.method == "HEAD")
            line, *fields = OWN_ID.sub(rb"\1-", CHANGING.sub(rb"\1-", head)).split(b"\r\n")
            found.append(b"\r\n".join([line, *sorted(fields[:-2]), b"", body]))
            ends = form.closes or b"\r\nConnection: close\r\n" in head
        if ends:
            found.append(await wire.rest())
            await self.close()
        return found


class Pair:
    """Both servers."""

    def __init__(self, early: Way, long: Way, base: str) -> None:
        self.early, self.long, self.base = early, long, base

    async def ask(self, raw: bytes, form: Form = PLAIN) -> Answered:
        """Send the request to both servers. Their answers must be the same, byte for byte."""
        before = self.early.answered
        for way in (self.early, self.long):
            await way.send(raw, form)
        found, expected = await self.early.answers(form), await self.long.answers(form)
        assert found == expected, f"{found}\nis not that of the long way:\n{expected}"
        assert self.long.answered == 0
        return Answered(expected[: form.count], self.early.answered - before)

    async def repeat(self, form: Form, target: str, more: Sequence[str], tag: str = "") -> Answered:
        """Send the request until its head is known, and once more. Check the way that the last one takes."""
        raw = form.raw(self.base + target, more, tag)
        first, second = await self.ask(raw, form), await self.ask(raw, form)
        if form.way == LONG or first.status not in HELD:
            assert first.early + second.early == 0, f"an early answer with {first.status}"
            return second
        last = await self.ask(raw, form)
        if last.early != form.count:  # after a change of counters, what was kept may just have become 4 seconds old
            last = await self.ask(raw, form)
        assert last.early == form.count, f"{last.early} early answers in place of {form.count}"
        return last

    async def hang_up(self) -> None:
        """Close the connections, so that the next request opens others."""
        for way in (self.early, self.long):
            await way.close()


@asynccontextmanager
async def two_ways(
    store: Store, clock: Clock, settings: Settings, *, tls: SSLContext | None = None
) -> AsyncIterator[Pair]:
    """Run two servers with these settings. `clock`: limits follow it, too."""
    root = f"https://music.example{settings.server.base_path}"
    servers = [ServiceServer(store, CalendarClock(clock), settings, root) for _ in range(2)]
    ways: list[Way] = []
    try:
        for server in servers:
            await server.start_server()
            ways.append(Way(server, tls))
        ways[1].never_early()
        early, long = ways
        yield Pair(early, long, settings.server.base_path)
    finally:
        for way in ways:
            await way.close()
        for server in servers:
            await server.close()
