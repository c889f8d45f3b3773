"""Callers of the mixed load: each has a connection and a token, and most revalidate as a browser does."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from load import Connection, raw
from mixed_world import Wanted

TAG = re.compile(rb"\r\netag: ([^\r]+)", re.IGNORECASE)
NOT_MODIFIED = 304


class Exchange(NamedTuple):
    """A request as it was sent, and the status and the size of the body that answered it."""

    wanted: Wanted
    headers: Sequence[str]
    status: int
    size: int


class Browser:
    """A caller that remembers the entity tags of what it read; a `simple` one neither revalidates nor takes gzip."""

    def __init__(self, token: str, *, simple: bool) -> None:
        self._token = token
        self._simple = simple
        self._tags: dict[str, str] = {}
        self.exchanges: list[Exchange] = []

    async def ask(self, port: int, wanted: Iterable[Wanted], times: list[float]) -> None:
        """Send the requests one after the other, and record them with their answers in `exchanges`."""
        self.exchanges = []
        self._sent: tuple[Wanted, Sequence[str]]

        def requests() -> Iterator[bytes]:
            for each in wanted:
                tag = self._tags.get(each.path) if each.method == "GET" else None
                headers = [] if self._simple else ["Accept-Encoding: gzip, deflate, br"]
                self._sent = each, [*headers, f"If-None-Match: {tag}"] if tag and not self._simple else headers
                yield request_of(each, self._sent[1], self._token, port)

        await converse(port, Recording(requests(), times, self))

    def took(self, head: bytes, status: int, size: int) -> None:
        """Record an answer."""
        wanted, headers = self._sent
        self.exchanges.append(Exchange(wanted, headers, status, size))
        tag = TAG.search(head)
        if tag is not None:
            self._tags[wanted.path] = tag[1].decode()

    def replay(self, port: int) -> list[bytes]:
        """Return the recorded requests for the yardstick, which answers with the same statuses and sizes."""
        return [
            request_of(
                each.wanted._replace(path="/asked"),
                [*each.headers, f"X-Answer: {each.status} {each.size}"],
                self._token,
                port,
            )
            for each in self.exchanges
        ]


def request_of(wanted: Wanted, headers: Sequence[str], token: str, port: int) -> bytes:
    """Return the bytes of a request."""
    more = headers if wanted.body or wanted.method == "GET" else [*headers, "Content-Length: 0"]
    return raw(wanted.path, port, token=token, method=wanted.method, body=wanted.body, more=more)


class Lenient(Connection):
    """A connection that also takes 304."""

    def take_head(self, head: bytes) -> int:
        return 0 if _status(head) == NOT_MODIFIED else super().take_head(head)


class Recording(Lenient):
    """A connection whose caller records the answers."""

    def __init__(self, requests: Iterable[bytes], times: list[float], caller: Browser) -> None:
        super().__init__(requests, times)
        self._caller = caller

    def take_head(self, head: bytes) -> int:
        size = super().take_head(head)
        self._caller.took(head, _status(head), size)
        return size


def _status(head: bytes) -> int:
    return int(head[9:12])


async def converse(port: int, connection: Connection) -> None:
    """Open the connection, and return when all its requests are answered."""
    await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", port)
    await connection.done
