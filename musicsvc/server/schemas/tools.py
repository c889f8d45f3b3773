"""The messages of assistants (JSON-RPC 2.0)."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from musicsvc.server.schemas.fields import MAX_ID, Body
from musicsvc.wording import LONGEST_NAME

Text = Annotated[str, Field(strict=True, max_length=LONGEST_NAME)]


def _id(value: Any) -> Any:
    if isinstance(value, str) and len(value) <= LONGEST_NAME:
        return value
    if value is None or (type(value) is int and abs(value) <= MAX_ID):
        return value
    raise ValueError(f"Must be an integer, or a text of at most {LONGEST_NAME} characters.")


class Message(Body):
    """A request, or a notification, which has no id."""

    jsonrpc: Literal["2.0"]
    id: Annotated[int | str | None, BeforeValidator(_id)] = None
    method: Text
    params: Annotated[dict[str, Any], BeforeValidator(lambda sent: {} if sent is None else sent)] = Field(
        default_factory=dict
    )
