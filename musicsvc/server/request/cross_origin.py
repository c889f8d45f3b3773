"""Requests of browser code from other origins, by the CORS protocol of the Fetch standard. Cookies never count."""

from collections.abc import Collection, Mapping

from aiohttp import hdrs
from aiohttp.web import BaseRequest

from musicsvc.errors import Failure, MethodNotAllowed
from musicsvc.server.responses.responses import VARY, Reply
from musicsvc.server.shapes.envelope import Representation

VARYING = {"Vary": f"Origin, {VARY}"}
API = "/api/"  # pages are for browsers that are on them
READABLE = (
    "Content-Disposition, ETag, RateLimit, RateLimit-Policy, Retry-After, Token-Expires-At, WWW-Authenticate,"
    " X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id"
)
PREFLIGHT = {
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match, X-Request-Id",
    "Access-Control-Max-Age": "600",
}


class CrossOrigin:
    def __init__(self, origins: Collection[str]) -> None:
        """`origins`: those whose code may read responses of the API, such as `https://app.example`."""
        self._origins = frozenset(origins)

    def headers(self, request: BaseRequest, path: str) -> Mapping[str, str]:
        """Return the headers by which a browser lets its code read the response. `path`: without the base path."""
        if not self._origins or not path.startswith(API):
            return {}
        origin = request.headers.get(hdrs.ORIGIN)
        if origin not in self._origins:
            return VARYING
        return {
            **VARYING,
            hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin,
            hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: READABLE,
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
        allowed = {hdrs.ACCESS_CONTROL_ALLOW_METHODS: ", ".join(refused.allowed)}
        return Reply(Representation(b"", "text/plain", "", compressible=False), 204, allowed | PREFLIGHT)
