"""Queries and answers about accounts and their follows."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from musicsvc.server.schemas.answers import Success, UserSummary
from musicsvc.server.schemas.fields import Query, query_integer, text


class SearchQuery(Query):
    """Which accounts to search for; `q` is another name of `query`."""

    other_names: ClassVar = {"q": "query"}

    query: text(1, 100) = Field(  # type: ignore[valid-type]
        description="Part of a display name, in whatever case and accents; one or two characters: the start of a word.",
        examples=["no"],
    )
    limit: query_integer(1, 50) = Field(10, description="How many accounts at most.")  # type: ignore[valid-type]


class OneUser(Success):
    """An account as others see it."""

    user: UserSummary


class FoundUsers(Success):
    """Accounts, the best match first."""

    users: list[UserSummary]
