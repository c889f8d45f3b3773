"""From failures to statuses and to the two error bodies (docs/api.md, Errors)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from musicsvc import errors
from musicsvc.server.routes.route import Family

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import JSON

MAX_LISTED = 1000
STATUSES: dict[type[errors.Failure], int] = {
    errors.Malformed: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.MethodNotAllowed: 405,
    errors.TooSlow: 408,
    errors.Conflict: 409,
    errors.TooLarge: 413,
    errors.UnsupportedMedia: 415,
    errors.Invalid: 422,
    errors.TooMany: 429,
    errors.Unavailable: 503,
    errors.Overloaded: 503,
}
CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    413: "payload_too_large",
    415: "unsupported_media_type",
    422: "validation_failed",
    429: "rate_limited",
    500: "server_error",
    503: "unavailable",
}


def status_of(failure: errors.Failure) -> int:
    """The HTTP status of the failure; 500 for one that has no other."""
    return next((status for kind, status in STATUSES.items() if isinstance(failure, kind)), 500)


def body_of(failure: errors.Failure, family: Family) -> JSON:
    """The error body of the family that the path belongs to."""
    status = status_of(failure)
    faults = _listed(failure.errors) if isinstance(failure, errors.Invalid) else {}
    if family is Family.INSIGHTS:
        more = {"errors": faults} if isinstance(failure, errors.Invalid) else {}
        return {"success": False, "message": failure.message, "error": CODES[status], **more}
    if isinstance(failure, errors.Unauthenticated):
        return {"message": failure.message}
    return {"status": "error", "message": failure.message, "errors": faults}


def _listed(faults: dict[str, str]) -> dict[str, str]:
    """Return the errors that an answer lists: a batch can have thousands."""
    if len(faults) <= MAX_LISTED:
        return faults
    rest = {"body": f"Has {len(faults):,} errors; the first {MAX_LISTED:,} are listed."}
    return rest | dict(islice(faults.items(), MAX_LISTED))


def headers_of(failure: errors.Failure) -> dict[str, str]:
    """The headers that the failure asks for."""
    if isinstance(failure, errors.Unauthenticated):
        reason = failure.reason and f' error="invalid_token", error_description="{failure.reason}"'
        return {"WWW-Authenticate": f"Bearer{reason or ''}"}  # RFC 6750, section 3
    if isinstance(failure, errors.MethodNotAllowed):
        return {"Allow": ", ".join(failure.allowed)}
    if isinstance(failure, errors.TooMany | errors.Overloaded):
        return {"Retry-After": str(failure.retry_after)}
    if isinstance(failure, errors.Unavailable):
        return {"Retry-After": "1"}
    return {}
