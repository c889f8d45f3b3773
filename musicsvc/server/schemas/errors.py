"""Schemas of error responses (docs/api.md, Errors)."""

from typing import Literal

from pydantic import BaseModel, Field

from musicsvc.server.schemas.answers import Answer

# The value of `error` in error responses of the insights endpoints, by HTTP status.
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


class Error(Answer):
    """The body of an error; `errors` maps each invalid field to a message, and is empty if none is."""

    status: Literal["error"]
    message: str
    errors: dict[str, str]


class Unauthenticated(Answer):
    """The body of a 401, except below insights: one field, as the original specification fixes it."""

    message: Literal["Unauthenticated."]


class InsightsError(Answer):
    """The body of every error of the insights endpoints, 401 too; `errors` is present only if fields are invalid."""

    success: Literal[False]
    message: str
    error: str = Field(json_schema_extra={"enum": list(CODES.values())})
    errors: dict[str, str] = Field({})


ALL: tuple[type[BaseModel], ...] = (Error, Unauthenticated, InsightsError)
