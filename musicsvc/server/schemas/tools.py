"""The messages of assistants (JSON-RPC 2.0)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from musicsvc.server.schemas.fields import MAX_ID, Body
from musicsvc.wording import LONGEST_NAME

Number = Annotated[int, Field(strict=True, ge=-MAX_ID, le=MAX_ID)]
Text = Annotated[str, Field(strict=True, max_length=LONGEST_NAME)]


class Message(Body):
    """A request, or a notification, which has no id."""

    jsonrpc: Literal["2.0"]
    id: Number | Text | None = None
    method: Text
    params: dict[str, Any] = Field(default_factory=dict)
