"""Describe the response headers in the OpenAPI document."""

from musicsvc.server.access import rate_limits
from musicsvc.server.access.authentication import EXPIRY_HEADER
from musicsvc.server.shapes.envelope import JSON

CACHING = ("ETag", "Cache-Control", "Vary")
LIMITS = rate_limits.HEADERS  # on responses to requests with a rate limit; local requests have no rate limit
COMMON = ("X-Request-Id", EXPIRY_HEADER, *LIMITS)  # on any response, so described once for all endpoints
OPTIONAL = {EXPIRY_HEADER, *LIMITS}
MEMBER = r'"[a-z_]+"(;[a-z]=[0-9]+)+'
MEMBERS = {"type": "string", "pattern": f"^{MEMBER}(, {MEMBER})*$"}
TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
MEANINGS: dict[str, tuple[str, JSON]] = {
    "X-Request-Id": ("The id of the request.", TEXT | {"pattern": "^[A-Za-z0-9._~-]{1,128}$"}),
    "ETag": ("Identifies the content; send it back in `If-None-Match`.", TEXT | {"pattern": '^"[0-9a-z-]+"$'}),
    "Cache-Control": ("Whether the answer may be cached and revalidated by its `ETag`.", TEXT),
    "Vary": ("The request headers that the answer depends on.", TEXT),
    "WWW-Authenticate": (
        "`Bearer`, with the reason if the token that was sent is not valid (RFC 6750).",
        TEXT | {"pattern": '^Bearer( error="invalid_token", error_description="(unknown|expired|revoked)")?$'},
    ),
    EXPIRY_HEADER: ("When the token expires; sent in its last 14 days.", TEXT | {"format": "date-time"}),
    "Retry-After": ("Seconds to wait before the next try.", COUNT),
    "Allow": ("The methods that the path allows.", TEXT),
    "RateLimit-Policy": (
        "The rate limits of the request: `q` requests in `w` seconds.",
        MEMBERS | {"examples": ['"token";q=300;w=60']},
    ),
    "RateLimit": (
        "`r` more requests are allowed in the next `t` seconds. If `r` is 0, wait `t` seconds.",
        MEMBERS | {"examples": ['"token";r=299;t=60']},
    ),
    "X-RateLimit-Limit": ("Requests that the tightest rate limit allows in total.", COUNT | {"examples": [300]}),
    "X-RateLimit-Remaining": ("Requests that the tightest rate limit still allows.", COUNT | {"examples": [299]}),
    "X-RateLimit-Reset": (
        "Seconds in which the remaining requests may be sent, as `t` of `RateLimit`.",
        COUNT | {"examples": [60]},
    ),
}
HEADERS: JSON = {
    name: {"description": text, "required": name not in OPTIONAL, "schema": schema}
    for name, (text, schema) in MEANINGS.items()
}


def references(*names: str) -> JSON:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
