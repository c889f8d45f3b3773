"""The headers of answers: their meaning, and which answers carry them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.server.access import rate_limits
from musicsvc.server.access.authentication import EXPIRY_HEADER

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import JSON

CACHING = ("ETag", "Cache-Control", "Vary")
LIMITS = rate_limits.HEADERS  # on answers to requests that are held to a limit; those of the same machine are not
COMMON = ("X-Request-Id", EXPIRY_HEADER, *LIMITS)  # any answer may carry them: described once, for all
OPTIONAL = {EXPIRY_HEADER, *LIMITS}
MEMBER = r'"[a-z_]+"(;[a-z]=[0-9]+)+'
MEMBERS = {"type": "string", "pattern": f"^{MEMBER}(, {MEMBER})*$"}
TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
MEANINGS: dict[str, tuple[str, JSON]] = {
    "X-Request-Id": ("The request's own name.", TEXT | {"pattern": "^[A-Za-z0-9._~-]{1,128}$"}),
    "ETag": ("What this answer is, to be sent back in `If-None-Match`.", TEXT | {"pattern": '^"[0-9a-z-]+"$'}),
    "Cache-Control": ("Who may keep the answer, to ask again with its `ETag`.", TEXT),
    "Vary": ("The request headers that the answer depends on.", TEXT),
    "WWW-Authenticate": (
        "`Bearer`, and why the token that was sent is not valid (RFC 6750).",
        TEXT | {"pattern": '^Bearer( error="invalid_token", error_description="(unknown|expired|revoked)")?$'},
    ),
    EXPIRY_HEADER: ("When the token expires; sent in its last 14 days.", TEXT | {"format": "date-time"}),
    "Retry-After": ("Seconds to wait before the next try.", COUNT),
    "Allow": ("The methods that the path takes.", TEXT),
    "RateLimit-Policy": (
        "The limits that hold for the request: how many (`q`) in how many seconds (`w`).",
        MEMBERS | {"examples": ['"token";q=300;w=60']},
    ),
    "RateLimit": (
        "How many requests remain (`r`), and for how many seconds (`t`); of none, until one does.",
        MEMBERS | {"examples": ['"token";r=299;t=60']},
    ),
    "X-RateLimit-Limit": ("The tightest limit: how many it lets in.", COUNT | {"examples": [300]}),
    "X-RateLimit-Remaining": ("The tightest limit: how many requests remain.", COUNT | {"examples": [299]}),
    "X-RateLimit-Reset": ("The tightest limit: the seconds of `RateLimit`.", COUNT | {"examples": [60]}),
}
HEADERS: JSON = {
    name: {"description": text, "required": name not in OPTIONAL, "schema": schema}
    for name, (text, schema) in MEANINGS.items()
}


def of(*names: str) -> JSON:
    """Return references to the headers of these names."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
