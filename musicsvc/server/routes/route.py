"""What a row of the table of endpoints says, and how a path finds its row."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from musicsvc.errors import MethodNotAllowed, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pydantic import BaseModel

    from musicsvc.config import Settings
    from musicsvc.server.schemas.fields import Body, Query

SAFE = ("GET", "HEAD")
JSON_MEDIA = "application/json"


class Access(Enum):
    """Who may call: anybody, anybody in the public tier, a token's holder."""

    OPEN = "open"
    PUBLIC = "public"
    TOKEN = "token"  # noqa: S105 - a word, no secret


class Family(Enum):
    """How answers and errors look: the general body, the insights body, or a page outside the API."""

    GENERAL = "general"
    INSIGHTS = "insights"
    PLAIN = "plain"


class Quota(Enum):
    """What limit an endpoint is held to beside that of its caller; the setting of the same name says how many."""

    REGISTER = "register"
    EXPORTS = "exports"
    COVER_ART = "cover_art"


@dataclass(frozen=True)
class Route:
    """One endpoint: everything that router, checks, OpenAPI, documentation and tests need to know of it.

    `find` is the store function that looks the subject of the path up, with the right that is asked for. `example`
    holds what the OpenAPI document's example says otherwise than the schemas do: parameters of the path and fields of
    the body, by name.
    """

    method: str
    path: str
    handler: Callable[..., Any]
    access: Access = Access.TOKEN
    status: int = 200
    family: Family = Family.GENERAL
    find: Callable[..., Any] | None = None
    body: type[Body] | None = None
    query: type[Query] | None = None
    answer: type[BaseModel] | None = None
    public_answer: type[BaseModel] | None = None
    media: str = JSON_MEDIA
    limit: Quota | None = None
    gate: Callable[[Settings], None] | None = None
    prepare: Callable[..., Any] | None = None
    render: Callable[..., Any] | None = None  # heavy work on the result, off the store thread
    reads: bool = False
    lengthy: bool = False  # may take long, so that few are under way at once
    nests_tracks: bool = False  # with a token each row of a page holds tracks, so that a large page is built apart
    storeless: bool = False
    addition: bool = False
    hidden: bool = False
    plain_http: bool = False
    private: bool = False  # its subject can be private to others, so that a denial may be a probe
    forbids: bool = False
    names: bool = False  # the body names something that can be unknown: 404 after the 422s
    conflicts: bool = False
    refuses: bool = False  # the handler can raise Invalid, though there is neither body nor query
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @property
    def writes(self) -> bool:
        """Whether the handler runs in a write transaction."""
        return self.method not in SAFE and not self.reads

    @property
    def heavy(self) -> bool:
        """Whether its work waits for threads of its kind, so that there may be no capacity for it."""
        return self.lengthy or self.prepare is not None or self.render is not None

    @property
    def operation(self) -> str:
        """A name that no other endpoint has."""
        return f"{self.handler.__module__.rpartition('.')[2]}_{self.handler.__name__}"


class Router:
    """Finds the row of a method and a path; a literal segment goes before a parameter."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._literal: dict[str, dict[str, Route]] = {}
        self._patterns: dict[int, list[tuple[Sequence[str], Route]]] = {}
        for route in routes:
            parts = route.path.split("/")
            if route.parameters:
                self._patterns.setdefault(len(parts), []).append((parts, route))
            else:
                self._literal.setdefault(route.path, {})[route.method] = route
        for patterns in self._patterns.values():
            patterns.sort(key=lambda pattern: [part.startswith("{") for part in pattern[0]])

    def match(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """The row and the values of its path parameters. Raises NotFound and MethodNotAllowed."""
        wanted = "GET" if method == "HEAD" else method
        literal = self._literal.get(path, {})
        if wanted in literal:
            return literal[wanted], {}
        allowed = set(literal)
        parts = path.split("/")
        for pattern, route in self._patterns.get(len(parts), ()):
            values = _values(pattern, parts)
            if values is None:
                continue
            if route.method == wanted:
                return route, values
            allowed.add(route.method)
        if not allowed:
            raise NotFound("There is nothing at this path.")
        raise MethodNotAllowed(sorted(allowed | ({"HEAD"} if "GET" in allowed else set())))


def _values(pattern: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    values: dict[str, str] = {}
    for expected, actual in zip(pattern, parts, strict=True):
        if expected.startswith("{") and actual:
            values[expected[1:-1]] = actual
        elif expected != actual:
            return None
    return values
