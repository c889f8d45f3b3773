"""Queries and answers about accounts and their follows."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from musicsvc.server.schemas.answers import Success, UserSummary
from musicsvc.server.schemas.fields import DIGITS_ONLY, Query, Text


class SearchQuery(Query):
    """Which accounts to search for; `q` is another name of `query`."""

    other_names: ClassVar = {"q": "query"}

    query: Annotated[str, Text(1, 100)] = Field(
        description="Part of a display name, in whatever case and accents; one or two characters: the start of a word.",
        examples=["no"],
    )
    limit: Annotated[int, Field(ge=1, le=50), DIGITS_ONLY] = Field(10, description="How many accounts at most.")


class OneUser(Success):
    """An account as others see it."""

    user: UserSummary


class FoundUsers(Success):
    """Accounts, the best match first."""

    users: list[UserSummary]
