"""Schemas of responses, for the OpenAPI document and for tests; responses themselves are built as dicts."""

import functools
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from musicsvc.server.schemas.fields import URL_PATTERN

T = TypeVar("T")
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"
Date = Annotated[str, Field(examples=["1899-09-18"], json_schema_extra={"format": "date"})]
Timestamp = Annotated[
    str,
    Field(pattern=MOMENT, examples=["2026-01-31T12:00:00.000000Z"], json_schema_extra={"format": "date-time"}),
]
Uri = Annotated[str, Field(pattern=URL_PATTERN, examples=["https://images.example.test/maple-leaf.jpg"])]


class Answer(BaseModel):
    """Base of response schemas: no keys other than the fields; keys with a default may be absent.

    The OpenAPI document uses the `examples` of the fields; a string without a fixed format needs an example.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)  # a server without readers of its document needs none


class Success(Answer):
    """A successful response without further data."""

    status: Literal["success"]


class Alive(Answer):
    """A response that shows that the server is running."""

    status: Literal["ok"]


class Ready(Answer):
    """A response that shows that the server can read and change the database."""

    status: Literal["ready"]


class UserSummary(Answer):
    """The public part of an account."""

    id: int
    display_name: str = Field(examples=["Northern Lights Records"])
    avatar: Uri = Field(examples=["https://music.example.test/avatars/7"])


class Paginator(Answer, Generic[T]):
    """One page of a list."""

    current_page: int
    from_: int | None = Field(alias="from", description="The number of the first row on the page, from 1.")
    to: int | None
    per_page: int = Field(examples=[20])
    last_page: int
    total: int
    data: list[T]


class Paged(Success, Generic[T]):
    """A response with one page of a list under `pagination`."""

    pagination: Paginator[T]


@functools.cache
def one(key: str, schema: type[Answer]) -> type[Success]:
    """Return the schema of a response with one object under its noun."""
    field: dict[str, Any] = {key: (schema, ...)}
    text = f"A response with one {key.replace('_', ' ')}."
    return create_model(f"One{schema.__name__}", __base__=Success, __module__=__name__, __doc__=text, **field)
