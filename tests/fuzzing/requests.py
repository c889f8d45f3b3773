"""Random requests to every endpoint: the example of the OpenAPI document, valid or with something wrong."""

import re
from dataclasses import dataclass
from random import Random
from typing import Any

from musicsvc.server.openapi.document import document
from musicsvc.server.routes.route import Route
from musicsvc.server.routes.table import ROUTES
from tests.fuzzing import values

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
HEAVY = ("/export/pdf", "/cover-art/preview", "/auth/register")  # slow by design, so requested less often
QUERIES = ("page", "perPage", "per_page", "with", "query", "q", "limit", "period", "timeframe", "x")
TYPES = (
    *(
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=utf-16",
        "text/plain",
        "a/b",
        "",
    ),
    *("multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "application/problem+json", '";"'),
)
HEADERS = (
    *(
        "Accept-Encoding: gzip",
        "Accept-Encoding: gzip;q=0, *",
        "Accept-Encoding: ;q=,",
        "If-None-Match: *",
        'If-None-Match: "a", W/"b',
    ),
    *(
        "X-Request-Id: told-by-the-client",
        "X-Request-Id: " + "a" * 200,
        "X-Request-Id: \udcff",
        "Content-Encoding: gzip",
    ),
    *("Expect: 100-continue", "Connection: keep-alive", "Accept: text/html", "Range: bytes=0-1", "Cookie: a=b; \udcff"),
    *("If-Modified-Since: x", "Origin: https://elsewhere.test", "Sec-Fetch-Site: cross-site", "Host: [", "Via: 1.1 a"),
    *("Accept: application/json", "Sec-Fetch-Site: same-origin"),
)


@dataclass(frozen=True)
class FuzzRequest:
    """A request with valid framing; anything else may be invalid."""

    method: str
    target: str
    headers: tuple[str, ...]
    body: bytes
    documented: bool

    @property
    def raw(self) -> bytes:
        """The bytes to send."""
        lines = [f"{self.method} {self.target} HTTP/1.1", *self.headers]
        if not any(line.lower().startswith("host:") for line in self.headers):
            lines.insert(1, "Host: localhost")
        if self.body or self.method in {"POST", "PUT"}:
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + self.body


class RequestGenerator:
    """Generates requests, the same ones for the same random generator."""

    def __init__(self, chance: Random, tokens: dict[str, str]) -> None:
        """`tokens`: those of the fixtures; most requests use that of demo."""
        self._chance = chance
        self._tokens = tokens
        paths = document("https://music.test")["paths"]
        self._bodies = {
            (method.upper(), path): operation["requestBody"]["content"]["application/json"].get("example", {})
            for path, operations in paths.items()
            for method, operation in operations.items()
            if "requestBody" in operation
        }
        self._weights = [0.1 if route.path.endswith(HEAVY) else 1.0 for route in ROUTES]

    def make(self) -> FuzzRequest:
        """Return the next request."""
        chance = self._chance
        (route,) = chance.choices(ROUTES, self._weights)
        method = route.method if chance.random() < 0.93 else chance.choice(METHODS)
        headers = [*self._authorization(), *chance.sample(HEADERS, chance.choice((0, 0, 1, 2)))]
        body = b""
        if (route.method, route.path) in self._bodies or chance.random() < 0.05:
            body = self._body(route)
            headers.append(f"Content-Type: {TYPES[0] if chance.random() < 0.9 else chance.choice(TYPES)}")
        return FuzzRequest(method, self._path(route) + self._query(), tuple(headers), body, not route.docs.undocumented)

    def _path(self, route: Route) -> str:
        chance = self._chance
        path = re.sub(r"\{\w+\}", lambda _: values.in_url(chance, path=True), route.path)
        way = chance.randrange(60)
        return path + "/" if way == 0 else path.upper() if way == 1 else "/" + path if way == 2 else path

    def _query(self) -> str:
        chance = self._chance
        names = chance.choices(QUERIES, k=chance.choice((0, 0, 1, 1, 2, 3)))
        if not names:
            return ""
        return "?" + "&".join(f"{name}={values.in_url(chance, path=False)}" for name in names)

    def _authorization(self) -> list[str]:
        chance = self._chance
        token = self._tokens["demo"] if chance.random() < 0.8 else chance.choice(list(self._tokens.values()))
        way = chance.randrange(40)
        if way < 4:
            return []
        if way == 4:
            return [f"Authorization: {chance.choice(('Basic', 'bearer', 'Bearer  ', ''))} {token}"]
        if way == 5:
            return [f"Authorization: Bearer {token[:-1]}{chance.choice(('', 'x', chr(0xDCFF)))}"]
        if way == 6:
            return [f"Authorization: Bearer {token}"] * 2
        return [f"Authorization: Bearer {token}"]

    def _body(self, route: Route) -> bytes:
        value: Any = self._bodies.get((route.method, route.path), {"name": "x"})
        for _ in range(self._chance.choice((0, 0, 1, 1, 2, 4))):
            value = values.mutate(self._chance, value)
        return values.spell(self._chance, value)
