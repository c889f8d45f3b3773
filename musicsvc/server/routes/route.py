"""Rows of the table of endpoints, and the router that finds the row for a path.

The signatures of a row's functions are inspected once, at the start, instead of in every request.
"""

import inspect
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any

from pydantic import BaseModel

from musicsvc.config import Settings
from musicsvc.errors import MethodNotAllowed, NotFound
from musicsvc.server.routes.deprecation import Deprecated
from musicsvc.server.schemas.fields import MAX_ID, Body, Pages, Query, parse_id
from musicsvc.store.accounts.tokens import Identity

V1 = "/api/v1"  # the beginning of the paths of the API
INSIGHTS, ACCESS_REQUESTS = f"{V1}/producer-intelligence/insights", f"{V1}/access-requests"
TOOLS, LISTENS = "/mcp", "/1/"  # the path of MCP, and the beginning of those of ListenBrainz
SAFE, JSON_MEDIA = ("GET", "HEAD"), "application/json"
# Parameters of a handler whose responses depend on nothing but the request, the caller and the database.
CACHEABLE = {"subject", "query", "caller", "site", "answer"}
ME = "me"  # stands for the caller in a path
NOW, KEPT, RECEIVED = "now", "kept", "received"  # parameters of handlers
NO_ID, NO_TEXT = str(MAX_ID), "-"  # of no object
BoundFunction = Callable[[Mapping[str, Any]], Any]


class Access(Enum):
    """The callers that an endpoint accepts.

    OPEN: everyone. PUBLIC: everyone, but callers without a token get fewer fields. TOKEN: callers with a token, whose
    account has API access. ACCOUNT: callers with a token, whose account may have no API access. LISTENER: callers with
    a listening token, which no other endpoint accepts; ANY_LISTENER: the same, and those whose token is not valid.
    SESSION (pages only): signed-in users. DEVELOPER (pages only): signed-in users with API access. ADMIN (pages only):
    signed-in administrators.
    """

    OPEN = auto()
    PUBLIC = auto()
    TOKEN = auto()
    ACCOUNT = auto()
    LISTENER = auto()
    ANY_LISTENER = auto()
    SESSION = auto()
    DEVELOPER = auto()
    ADMIN = auto()


class Family(Enum):
    """The form of responses and errors: JSON, general, of insights, as ListenBrainz or MCP has it; a page, a file."""

    GENERAL = auto()
    INSIGHTS = auto()
    LISTENS = auto()
    TOOLS = auto()
    PAGE = auto()
    PLAIN = auto()


class PasswordOf(Enum):
    """Selects the account whose password a request must contain in its field `password`."""

    NAMED = auto()  # the account with the e-mail in the field `email`
    CALLER = auto()


class RateLimit(Enum):
    """An endpoint's own rate limit, in addition to the caller's. Its value is the setting `limits.<value>`.

    PASSWORD_LINKS counts requests whose link does not exist only.
    """

    REGISTER = "register"
    PASSWORD_LINKS = "password_links"  # noqa: S105 - a name
    EXPORTS = "exports"
    COVER_ART = "cover_art"
    REPORTS = "reports"


def signature(function: Callable[..., Any]) -> Sequence[inspect.Parameter]:
    return [*inspect.signature(function).parameters.values()]


def bind(function: Callable[..., Any], names: Sequence[str] | None = None) -> BoundFunction:
    """Return a function that calls `function` with values from a mapping, chosen by the names of its parameters.

    `names`: the names of the parameters; by default, they are read from the signature.
    """
    names = [each.name for each in signature(function)] if names is None else names

    def call(sources: Mapping[str, Any]) -> Any:
        try:
            return function(**{name: sources[name] for name in names})
        except StopIteration as error:  # no future takes it, so whoever waits for the response would wait for ever
            raise RuntimeError("There is no next item.") from error

    return call


class Subject:
    """Loads the object that a path names by ids, as in `/playlists/7`, or by texts such as `me`."""

    def __init__(self, path: str, find: Callable[..., Any]) -> None:
        """`path`: such as `/playlists/{id}`. `find` takes the parameters of the path, and loads the object.

        If it has a parameter `now`, it gets the time; any other is the caller, whose access it checks.
        """
        among = signature(find)
        named = path.count("{")
        of_path, rest = among[:named], among[named:]
        self.are_ids = [each.annotation in (int, "int") for each in of_path]
        self._rest = {each.name: NOW if each.name == NOW else "caller" for each in rest}
        self.depends_on_caller = "caller" in self._rest.values()
        self.depends_on_time = NOW in self._rest
        self._find = find
        self._collection = path.partition("/{")[0].rpartition("/")[2]

    def load(self, *texts: str, sources: Mapping[str, Any]) -> Any:
        """Return the object with these ids or texts. Raises NotFound if there is none, Forbidden if access is denied.

        `sources`: `caller` and `now`.
        """
        values = [parse_id(text) if is_id else text for text, is_id in zip(texts, self.are_ids, strict=True)]
        if None in values:
            raise NotFound
        return self._find(*values, **{name: sources[source] for name, source in self._rest.items()})

    def absent(self, *texts: str) -> list[str]:
        """Return ids and texts that name no object, in place of these. What is no valid id stays."""
        pairs = zip(texts, self.are_ids, strict=True)
        return [(NO_ID if parse_id(text) is not None else text) if is_id else NO_TEXT for text, is_id in pairs]

    def resource(self, text: str, *_: str) -> str | None:
        """Return the object's name for logs, such as `playlists/7`. None if `text` is neither an id nor `me`."""
        known = parse_id(text) is not None or (text == ME and not self.are_ids[0])
        return f"{self._collection}/{text}" if known else None


class Runs(Enum):
    """Where a handler runs, and how many at once.

    BRIEFLY: in a transaction of milliseconds. CONSTANT: on the event loop; it reads nothing, and its response is kept.
    NO_STORE: without the database. IN_TURN: the same, one after the other. SLOW: in a transaction that may take long,
    so only few run at once. FIGURES: a page that computes figures, a few at once, apart from exports; with
    `Cost.render`, that computes them.
    """

    BRIEFLY = auto()
    CONSTANT = auto()
    NO_STORE = auto()
    IN_TURN = auto()
    SLOW = auto()
    FIGURES = auto()


class Probe(Enum):
    """An endpoint for machines that watch the service: also outside of the base path, and logged only when it fails.

    HEALTH and READY: also answered without TLS. READY: says in its body what it lacks.
    """

    HEALTH = auto()
    READY = auto()
    METRICS = auto()


@dataclass(frozen=True, slots=True)
class Cost:
    """The way a handler runs, and the work around it.

    - `reads`: a method other than GET that writes nothing.
    - `replica`: reads figures, which may be up to 5 seconds old, so a read replica may answer.
    - `urgent`: revokes a right, so it also succeeds on a full disk, in disk space reserved for revocations.
    - `settles`: what the client reads after the response is at least as new, whatever process answers.
    - `nests_tracks`: with a token, each row of a page contains tracks, so large pages are built on a separate thread.
    - `counters_only`: writes nothing but counters, which cached responses may show up to 5 seconds later.
    - `current`: no response is cached, because it shows what a request with `counters_only` has written.
    - `prepare`, `render`: slow work before the handler, and after it on its result; both run outside the transaction.
      Before `prepare`, the object of the path is looked up, so that a path without one costs no slow work.
    - `tally`: returns numbers for metrics, by name, from the handler's result.
    """

    runs: Runs = Runs.BRIEFLY
    reads: bool = False
    replica: bool = False
    urgent: bool = False
    settles: bool = False
    nests_tracks: bool = False
    counters_only: bool = False
    current: bool = False
    probe: Probe | None = None
    prepare: Callable[..., Any] | None = None
    render: Callable[..., Any] | None = None
    tally: Callable[[Any], Mapping[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class Docs:
    """The statements of the OpenAPI document about an endpoint, beside its schemas.

    - `extension`: goes beyond the original specification; `undocumented`: absent from the document.
    - `raises`: further error statuses (404, 409, 422), which other fields of the route do not imply.
    - `example`: by name, examples of path parameters and body fields that replace those of the schemas.
    - `noun`: track, album or artist, if the handler serves all three. `tool`: the name that assistants call it by.
    """

    extension: bool = False
    undocumented: bool = False
    raises: Collection[int] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    noun: str = ""
    tool: str = ""
    media: str = JSON_MEDIA


NO_STORE, SLOW, URGENT = Cost(Runs.NO_STORE), Cost(Runs.SLOW), Cost(urgent=True)
EXTENSION, UNDOCUMENTED = Docs(extension=True), Docs(undocumented=True)


@dataclass(slots=True)
class Route:
    """One endpoint, read by the router, the stages of a request, the OpenAPI document and the tests.

    - `find`: the store function that loads the object that the path names, if the caller has a right to it.
    - `body`, `query`: schemas; by default, the types of the parameters of the handler with these names.
    - `answer`, `public_answer`: schemas of a successful response, with a token and without a token.
    - `password`: the body has a password to verify first. The handler gets `verified`, the account's credentials, or
      None if the password is wrong.
    - `form`: the path of the page with the form of this POST, which is shown again if the form has errors. Of a GET:
      its own path, if its query comes from a form of the page.
    - `keyed`: takes an `Idempotency-Key`: its answers are kept, for the case that they are lost on the way. A page:
      a form that is sent twice acts once; the answer that is kept is a redirect without a secret.
    - `private`: denied requests may be attempts to find private objects. `deprecated`: the endpoint will end.
    - `enabled_if` raises a Failure if the settings switch the endpoint off.
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
    limit: RateLimit | None = None
    password: PasswordOf | None = None
    form: str | None = None
    keyed: bool = False
    private: bool = False
    deprecated: Deprecated | None = None
    enabled_if: Callable[[Settings], None] | None = None
    cost: Cost = field(default_factory=Cost)
    docs: Docs = field(default_factory=Docs)
    notice: Mapping[str, str] = field(init=False)  # headers of any response
    call_handler: Callable[..., Any] = field(init=False)
    call_prepare: Callable[..., Any] | None = field(init=False)
    call_render: Callable[..., Any] | None = field(init=False)
    subject: Subject | None = field(init=False)
    keeps: bool = field(init=False)  # the handler reads what earlier requests have read
    upload: bool = field(init=False)  # the form of the body has a file, which is stored
    constant: bool = field(init=False)
    plain_http: bool = field(init=False)
    heavy: bool = field(init=False)  # requests run on an executor with limited capacity, and get 503 while it is full
    cacheable: bool = field(init=False)  # equal requests have equal responses until a write
    _depends_on_caller: bool = field(init=False)

    def __post_init__(self) -> None:
        """Bind the functions once, so that no signature is inspected while a request is answered."""
        cost, types = self.cost, {each.name: each.annotation for each in signature(self.handler)}
        names = tuple(types)
        self.notice = self.deprecated.headers if self.deprecated is not None else {}
        self.call_handler = bind(self.handler, names)
        self.call_prepare = cost.prepare and bind(cost.prepare)
        self.call_render = cost.render and bind(cost.render)
        self.subject = self.find and Subject(self.path, self.find)
        self.body = self.body or types.get("body")
        self.query = self.query or types.get("query")
        self.keeps, self.upload = KEPT in names, RECEIVED in names
        self.constant = cost.runs is Runs.CONSTANT
        self.plain_http = cost.probe in {Probe.HEALTH, Probe.READY}
        self._depends_on_caller = "caller" in names
        slow = cost.runs in {Runs.SLOW, Runs.FIGURES}
        self.heavy = slow or cost.prepare is not None or cost.render is not None
        reads = self.method in SAFE and self.family is Family.GENERAL and cost.runs is Runs.BRIEFLY and not self.heavy
        # What a replica has read is older than the versions of tables that a cached response is compared with.
        repeatable = not (cost.replica or cost.current) and (self.subject is None or not self.subject.depends_on_time)
        self.cacheable = reads and repeatable and CACHEABLE.issuperset(names)

    def audience(self, caller: Identity | None) -> Hashable:
        """Return a cache key that is equal for callers who get equal responses, such as all callers without a token."""
        if self.subject is not None and self.subject.depends_on_caller:
            return caller and caller.account
        if not self._depends_on_caller or caller is None:
            return None
        return True if self.access is Access.PUBLIC else caller.account

    def caching(self, *, anonymous: bool) -> str:
        """Return the Cache-Control header of a successful response. `anonymous`: the caller has no token."""
        public = self.access is Access.OPEN or (self.access is Access.PUBLIC and anonymous)
        return "public, no-cache" if public else "private, no-cache"

    @property
    def parameters(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @property
    def writes(self) -> bool:
        """Whether the handler runs in a write transaction."""
        return self.method not in SAFE and not self.cost.reads

    @property
    def needs_write_scope(self) -> bool:
        """Whether a token needs the scope `read-write`: not for GET, HEAD, exports and tools."""
        return self.method not in SAFE and self.limit is not RateLimit.EXPORTS and self.family is not Family.TOOLS

    @property
    def demo(self) -> bool:
        """Whether the endpoint exists in demo mode only."""
        return self.path.startswith("/demo/")

    @property
    def paged(self) -> bool:
        """Whether the endpoint answers with pages of a list."""
        return self.query is not None and issubclass(self.query, Pages)

    @property
    def operation(self) -> str:
        """The unique id of the operation in the OpenAPI document."""
        name = f"{self.handler.__module__.rpartition('.')[2]}_{self.handler.__name__}"
        return f"{name}_{self.docs.noun}" if self.docs.noun else name


Added = partial(Route, docs=EXTENSION)


class Router:
    """Finds the route of a method and a path. Literal segments take precedence over parameters."""

    def __init__(self, routes: Iterable[Route], base_path: str = "") -> None:
        self._base_path = base_path
        self._outside: set[str] = set()  # paths that are also answered outside of the base path
        self._literal: dict[str, dict[str, Route]] = {}
        # By number of segments, with the text before the first parameter, which excludes most patterns at once.
        self._patterns: dict[int, list[tuple[Sequence[str], str, Route]]] = {}
        for route in routes:
            parts = route.path.split("/")
            if route.cost.probe is not None:
                self._outside.add(route.path)
            if route.parameters:
                self._patterns.setdefault(len(parts), []).append((parts, route.path.partition("{")[0], route))
            else:
                self._literal.setdefault(route.path, {})[route.method] = route
        for patterns in self._patterns.values():
            patterns.sort(key=lambda pattern: [part.startswith("{") for part in pattern[0]])

    def local(self, path: str) -> str:
        """Return the path that the table has for the path of a request. Outside of the base path it is empty."""
        base = self._base_path
        if path.startswith(f"{base}/{LISTENS}"):  # of a player whose address of the service ends in a slash
            path = path.replace("//", "/", 1)
        if not base or path in self._outside:
            return path
        return path[len(base) :] if path.startswith(f"{base}/") else "/" if path == base else ""

    def match(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route of a local path, and the values of its parameters. Raises NotFound or MethodNotAllowed."""
        wanted = "GET" if method == "HEAD" else method
        literal = self._literal.get(path, {})
        if wanted in literal:
            return literal[wanted], {}
        allowed = set(literal)
        parts = path.split("/")
        for pattern, prefix, route in self._patterns.get(len(parts), ()) if not literal else ():
            values = _values(pattern, parts) if path.startswith(prefix) else None
            if values is None:
                continue
            if route.method == wanted:
                return route, values
            allowed.add(route.method)
        if not allowed:
            raise NotFound
        raise MethodNotAllowed(sorted(allowed | ({"HEAD"} if "GET" in allowed else set())))


def _values(pattern: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    values: dict[str, str] = {}
    for expected, actual in zip(pattern, parts, strict=True):
        if expected.startswith("{") and actual:
            values[expected[1:-1]] = actual
        elif expected != actual:
            return None
    return values
