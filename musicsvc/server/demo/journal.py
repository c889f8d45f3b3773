"""The journal of a demo: its last requests to the API. The event loop adds them, handlers read them on threads."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from musicsvc import curl
from musicsvc.server.demo.faults import Injection

MOST_ENTRIES = 1000
CUT = "…"  # the end of a text that is cut
NO_TEXT = frozenset("\0\ufffd")

Ender = Literal["demo", "client"]


class SentToken(NamedTuple):
    """The token of a request. `refusal`: None if it is valid, otherwise unknown, revoked or expired.

    The other fields are None if there is no such token.
    """

    refusal: str | None
    last_four: str | None = None
    id: int | None = None
    name: str | None = None
    scope: str | None = None
    account_id: int | None = None
    account_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A request that has ended, without secrets, and bounded in size.

    `number`: 1, 2, … in the order in which requests end. `at`, `ended_at`: the demo's time in microseconds since 1970;
    `began`, `ended`: the same moments in seconds of the monotonic clock. `target`: path and query. `route`: the path in
    the OpenAPI document. `status`: None if no response was sent. `ended_by`: who has closed the connection before the
    whole response was sent. `body`: the text of the request's body in UTF-8, None if none was received; `size`: the
    bytes that were received; `is_cut`: the rest is left out; `is_json`: the body is JSON. `message`, `errors`: those
    of a refusal.
    """

    number: int
    at: int
    ended_at: int
    began: float
    ended: float
    method: str
    target: str
    route: str | None
    status: int | None
    ended_by: Ender | None
    injection: Injection | None
    request_id: str
    token: SentToken | None
    headers: Mapping[str, str]
    body: bytes | None
    size: int
    is_cut: bool
    is_json: bool
    response_headers: Mapping[str, str]
    message: str | None
    errors: Mapping[str, str]

    def curl(self, origin: str) -> str | None:
        """Return the request as a command line of curl, or None if it is too long.

        A body that is long, or no text, is read from a file.
        """
        if self.target.endswith(CUT):
            return None
        headers = {name: value for name, value in self.headers.items() if name != "User-Agent" and value != "*/*"}
        body = None if self.body is None else self.body.decode()
        no_text = not self.is_json and not NO_TEXT.isdisjoint(body or "")
        file, url = "body" if self.is_cut or no_text else None, origin + self.target
        return curl.command(self.method, url, authorized=self.token is not None, body=body, file=file, headers=headers)


class Contents(NamedTuple):
    """The whole bodies of a request and of its response, with secrets. Do not keep them.

    `request`: None if none was received. `response`: None if it is no JSON; also that of a 304, and of a response that
    was lost.
    """

    request: bytes | None
    response: bytes | None


class Journal:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Entry] = deque(maxlen=MOST_ENTRIES)
        self._last = 0
        self._ended: Callable[[Entry, Contents], None] = lambda *_: None
        self._restarted: Callable[[], None] = lambda: None

    def watch(self, ended: Callable[[Entry, Contents], None], restarted: Callable[[], None]) -> None:
        """Let `ended` note each request that ends from now on, and `restarted` that numbers begin with 1 again.

        They are called on the event loop or a thread, and must neither block nor raise.
        """
        self._ended, self._restarted = ended, restarted

    def add(self, contents: Contents, **fields: Any) -> None:
        """Add a request that has ended. `fields`: those of its entry, but for the number."""
        with self._lock:
            self._last += 1
            entry = Entry(number=self._last, **fields)
            self._entries.append(entry)
        self._ended(entry, contents)

    def list(self, since: int) -> Sequence[Entry]:
        """Return the entries with a higher number than `since`, newest first."""
        with self._lock:
            return [*takewhile(lambda entry: entry.number > since, reversed(self._entries))]

    def clear(self) -> None:
        """Delete all entries. Numbers go on."""
        with self._lock:
            self._entries.clear()

    def restart(self) -> None:
        """Delete all entries, and begin with number 1 again."""
        with self._lock:
            self._entries.clear()
            self._last = 0
        self._restarted()
