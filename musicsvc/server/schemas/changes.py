"""Query string and response of the list of changes of the catalog."""

from typing import Literal

from pydantic import Field

from musicsvc.server.schemas.answers import Answer, Success
from musicsvc.server.schemas.fields import Query


class ChangesQuery(Query):
    since: str | None = Field(
        None,
        description="The `cursor` of an earlier response. Without it there are no changes, and the cursor of now.",
    )


class CatalogChange(Answer):
    """The change of an artist, album or track since the cursor, all together."""

    model_type: Literal["artist", "album", "track"] = Field(examples=["track"])
    id: int = Field(examples=[7])
    change: Literal["created", "updated", "deleted", "merged"] = Field(examples=["merged"])
    merged_into: int | None = Field(
        description="The id of the one into which it was merged, null for other changes.", examples=[9]
    )


class Changes(Success):
    """The next changes of the catalog, one for each object, at most 1,000."""

    changes: list[CatalogChange]
    cursor: str = Field(description="The `since` of the next request.", examples=["3q2-777vEjQAAAAAAAAAKg"])
    has_more: bool = Field(description="Whether there are more changes now.", examples=[False])
