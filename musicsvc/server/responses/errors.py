"""HTTP statuses, bodies and headers of error responses (docs/api.md, Errors)."""

from itertools import islice

from musicsvc import errors
from musicsvc.server.schemas.errors import CODES
from musicsvc.server.shapes.envelope import JSON

MAX_LISTED = 1000
FOR_PLAYERS = "Players need a valid listening token; tokens of other scopes are refused here."
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


def status_of(failure: errors.Failure) -> int:
    """Return the HTTP status for the failure, 500 by default."""
    return next((status for kind, status in STATUSES.items() if isinstance(failure, kind)), 500)


def body_of(failure: errors.Failure, *, insights: bool) -> JSON:
    """Return the error body, in the insights format if `insights` is set, else in the general format."""
    status = status_of(failure)
    found = _listed(failure.errors) if isinstance(failure, errors.Invalid) else {}
    if insights:
        more = {"errors": found} if isinstance(failure, errors.Invalid) else {}
        return {"success": False, "message": failure.message, "error": CODES[status], **more}
    if isinstance(failure, errors.Unauthenticated):
        return {"message": failure.message}
    return {"status": "error", "message": failure.message, "errors": found}


def of_listens(failure: errors.Failure) -> tuple[int, JSON]:
    """Return the status and the body of an error as ListenBrainz has them."""
    status, message = status_of(failure), failure.message
    if isinstance(failure, errors.Invalid):
        message = ": ".join(next(iter(failure.errors.items()), (message,)))
    if isinstance(failure, errors.Unauthenticated):
        message += f" {FOR_PLAYERS}"
    status = 400 if status in {408, 415, 422} else status
    return status, {"code": status, "error": message}


def _listed(found: dict[str, str]) -> dict[str, str]:
    """Return at most MAX_LISTED of the field errors, because a batch can have thousands."""
    if len(found) <= MAX_LISTED:
        return found
    rest = {"body": f"Has {len(found):,} errors; the first {MAX_LISTED:,} are listed."}
    return rest | dict(islice(found.items(), MAX_LISTED))


def state_of(failure: errors.Failure) -> JSON:
    """Return the body for a balancer that asks whether the server is ready."""
    return {"status": "read-only" if isinstance(failure, errors.ReadOnly) else "unavailable"}


def headers_of(failure: errors.Failure) -> dict[str, str]:
    """Return the additional headers of the error response, such as Retry-After."""
    if isinstance(failure, errors.Unauthenticated):
        reason = failure.reason and f' error="invalid_token", error_description="{failure.reason}"'
        return {"WWW-Authenticate": f"Bearer{reason or ''}"}  # RFC 6750, section 3
    if isinstance(failure, errors.MethodNotAllowed):
        return {"Allow": ", ".join(failure.allowed)}
    if isinstance(failure, errors.Later):
        return {"Retry-After": str(failure.retry_after)}
    if isinstance(failure, errors.Unavailable):
        return {"Retry-After": "1"}
    return {}
