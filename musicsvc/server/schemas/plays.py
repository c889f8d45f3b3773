"""Requests and responses of play reports, which list tracks that were played."""

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from musicsvc.clock import EPOCH, SECOND
from musicsvc.server.schemas.answers import Answer, Success
from musicsvc.server.schemas.fields import Body, Id, Text
from musicsvc.store.catalog.fields import MAX_DURATION

MOST = 1000
LATEST = 253_402_300_799  # the last second of the year 9999
TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)",
    re.IGNORECASE,
)
NO_TIME = "Must be a time such as 2026-01-31T12:00:00Z, with Z or an offset, or Unix seconds."
NO_SUCH_TIME = "There is no such day, time or offset. Seconds end at 59."


def _instant(value: Any) -> int:
    """Convert an ISO 8601 time with an offset, or Unix seconds, to microseconds since 1970."""
    if isinstance(value, str) and TIME.fullmatch(value.strip()):
        try:
            # The offset may move a time in the first or last year out of the range of datetime.
            return (datetime.fromisoformat(value.strip().upper()) - EPOCH) // (datetime.resolution)
        except (ValueError, OverflowError):
            raise ValueError(NO_SUCH_TIME) from None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not -LATEST <= value <= LATEST:
            raise ValueError("Is out of range; Unix times must be in seconds.")
        return value * SECOND if isinstance(value, int) else round(value * SECOND)
    raise ValueError(NO_TIME)


Moment = Annotated[
    int,
    BeforeValidator(_instant),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "number", "minimum": -LATEST, "maximum": LATEST},
            ],
            "description": "A time with Z or an offset, or Unix seconds.",
            "examples": ["2026-01-31T12:00:00Z"],
        }
    ),
]


class PlayIn(BaseModel):
    """A play of a track."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    track_id: Id
    played_at: Moment
    listener: Annotated[str, Text(1, 64)] | None = Field(
        None, description="Your own name or id of the listener; by default, the caller.", examples=[None]
    )
    duration_ms: Annotated[int, Field(strict=True, ge=0, le=MAX_DURATION)] | None = Field(None, examples=[184_250])
    client_id: Annotated[str, Text(1, 128)] | None = Field(
        None, description="Your own id of the play; the same id is counted once.", examples=["b1946ac92492d234"]
    )


class PlaysIn(Body):
    """A batch of up to 1,000 plays. If one is malformed, the batch fails, and none of them is stored."""

    plays: Annotated[list[PlayIn], Field(min_length=1, max_length=MOST)]


class Refused(Answer):
    """A well-formed play that was refused, and the reason."""

    index: int = Field(examples=[0], description="The index of the play in the request, from 0.")
    reason: str = Field(examples=["There is no such track."])


class Reported(Success):
    """A response with the numbers of accepted and repeated plays of the report, and its refused plays."""

    accepted: int
    repeated: int
    refused: list[Refused]
