"""Query string and responses of the account search, and the response with the caller's account."""

from typing import Annotated, ClassVar

from pydantic import Field

from musicsvc.server.schemas.answers import Success, UserSummary
from musicsvc.server.schemas.fields import DIGITS_ONLY, Query, Text


class SearchQuery(Query):
    """Query string of a search for accounts by display name; `q` is another name for `query`."""

    other_names: ClassVar = {"q": "query"}

    query: Annotated[str, Text(1, 100)] = Field(
        description="Part of a display name, ignoring case and accents; one or two characters match only word starts.",
        examples=["no"],
    )
    limit: Annotated[int, Field(ge=1, le=50), DIGITS_ONLY] = Field(10, description="Maximum number of accounts.")


class FoundUsers(Success):
    """A response with the matching accounts, the best match first."""

    users: list[UserSummary]
