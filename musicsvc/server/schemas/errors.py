"""What clients get where something fails, as schemas (docs/api.md, Errors)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from musicsvc.server.request.errors import CODES
from musicsvc.server.schemas.answers import Answer


class Error(Answer):
    """The general error body; `errors` names each faulty field, and is empty where none is to blame."""

    status: Literal["error"]
    message: str
    errors: dict[str, str]


class Unauthenticated(Answer):
    """The body of 401."""

    message: Literal["Unauthenticated."]


class InsightsError(Answer):
    """The error body of the insights endpoints; `errors` is there where fields are faulty."""

    success: Literal[False]
    message: str
    error: str = Field(json_schema_extra={"enum": list(CODES.values())})
    errors: dict[str, str] = Field({})


ALL: tuple[type[BaseModel], ...] = (Error, Unauthenticated, InsightsError)
