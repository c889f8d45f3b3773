"""Requests of browser code from other origins, by the CORS protocol of the Fetch standard. Cookies never count."""

from collections.abc import Collection, Mapping
from typing import ClassVar

from aiohttp import hdrs
from aiohttp.web import BaseRequest

from musicsvc.errors import Failure, MethodNotAllowed
from musicsvc.server.responses.responses import VARY, Reply
from musicsvc.server.shapes.envelope import Representation

VARYING = {"Vary": f"Origin, {VARY}"}


class CrossOrigin:
    """`paths`: the beginnings of those that code may read; pages are for browsers that are on them."""

    paths: ClassVar[tuple[str, ...]] = ("/api/",)
    sendable: ClassVar = "Authorization, Content-Type, If-None-Match, X-Request-Id"
    readable: ClassVar = (
        "Content-Disposition, ETag, RateLimit, RateLimit-Policy, Retry-After, Token-Expires-At, WWW-Authenticate,"
        " X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id"
    )

    def __init__(self, origins: Collection[str]) -> None:
        """`origins`: those whose code may read responses of the API, such as `https://app.example`."""
        self.origins = frozenset(origins)

    def headers(self, request: BaseRequest, path: str) -> Mapping[str, str]:
        """Return the headers by which a browser lets its code read the response. `path`: without the base path."""
        if not self.origins or not path.startswith(self.paths):
            return {}
        origin = request.headers.get(hdrs.ORIGIN)
        if origin not in self.origins:
            return VARYING
        return {
            **VARYING,
            hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin,
            hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: self.readable,
        }

    def preflight(self, request: BaseRequest, headers: Mapping[str, str], refused: Failure) -> Reply | None:
        """Return the response to a preflight from such an origin, or None if the refused request is none.

        `headers`: those of the response.
        """
        is_preflight = request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
        if not (is_preflight and isinstance(refused, MethodNotAllowed)):
            return None
        if hdrs.ACCESS_CONTROL_ALLOW_ORIGIN not in headers:
            return None
        allowed: dict[str, str] = {
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: ", ".join(refused.allowed),
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: self.sendable,
            hdrs.ACCESS_CONTROL_MAX_AGE: "600",
        }
        return Reply(Representation(b"", "text/plain", "", compressible=False), 204, allowed)
