"""A request as the points of the report card evaluate it: its entry in the journal, with both bodies as JSON."""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from musicsvc.server.demo.journal import Contents, Entry

SAFE = ("GET", "HEAD")
REDIRECT = 300
FAILED = 500
NO_CLIENT = "no User-Agent"
MOST_NODES = 50_000  # values of a body that are looked at


class Page(NamedTuple):
    """The numbers of a page of a list."""

    current_page: int
    last_page: int
    per_page: int
    total: int

    @property
    def follows_full_one(self) -> bool:
        """Whether it is the page after the last one, which is full."""
        return self.total > 0 and self.current_page == self.last_page + 1 and self.total % self.per_page == 0


class Observed:
    """A request that has ended. Points may keep the entry; the bodies are too large for that."""

    def __init__(self, entry: Entry, contents: Contents) -> None:
        self.entry = entry
        self._contents = contents
        self.path, _, self._query = entry.target.partition("?")

    @cached_property
    def client(self) -> str:
        """The client: its token, or if it has none, its User-Agent."""
        if (token := self.entry.token) is not None:
            known = token.id is not None
            return f"token {token.id} ({token.name})" if known else f"unknown token …{token.last_four}"
        return self.entry.headers.get("User-Agent", NO_CLIENT)

    @cached_property
    def query(self) -> Sequence[tuple[str, str]]:
        return parse_qsl(self._query, keep_blank_values=True)

    @cached_property
    def body(self) -> Any:
        """The JSON value that the client has sent; None if there is none."""
        return _parse(self._contents.request)

    @cached_property
    def answer(self) -> Any:
        """The JSON value that the client has now, also after a 304; None if there is none."""
        return _parse(self._contents.response) if self.arrived else None

    @property
    def arrived(self) -> bool:
        """Whether the client got the whole response."""
        return self.entry.ended_by is None and self.entry.status is not None

    @property
    def succeeded(self) -> bool:
        """Whether the client got the whole response, and the request was successful."""
        return self.arrived and (self.entry.status or FAILED) < REDIRECT

    @property
    def lost(self) -> bool:
        """Whether the client cannot know if the request was executed."""
        return self.entry.status is None or (self.entry.ended_by is not None and self.entry.method not in SAFE)

    @property
    def is_malformed(self) -> bool:
        """Whether the body is not valid JSON in UTF-8, or has half of a surrogate pair."""
        sent = self._contents.request
        return bool(sent) and (self.body is None or any(map(_has_surrogate, texts(self.body))))

    @cached_property
    def page(self) -> Page | None:
        """The page of the list that the client has received."""
        for part in self.answer.values() if isinstance(self.answer, dict) else ():
            if isinstance(part, dict) and all(isinstance(part.get(name), int) for name in Page._fields):
                return Page(*(part[name] for name in Page._fields))
        return None

    @property
    def values_of_path(self) -> Sequence[str]:
        """The values of the parameters of the path."""
        names = (self.entry.route or "").split("/")
        values = self.path.split("/")[-len(names) :]
        return [value for name, value in zip(names, values, strict=False) if name.startswith("{")]


def _parse(raw: bytes | None) -> Any:
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of all objects in a JSON value, and the items of its arrays under the name of the array."""
    waiting: list[tuple[str, Any]] = [("", value)]
    for _ in range(MOST_NODES):
        if not waiting:
            return
        name, part = waiting.pop()
        yield name, part
        if isinstance(part, dict):
            waiting += part.items()
        elif isinstance(part, list):
            waiting += ((name, item) for item in part)


def texts(value: Any) -> Iterator[str]:
    return (part for _, part in members(value) if isinstance(part, str))
