"""Request to create an access token, and responses with tokens."""

from typing import Annotated

from pydantic import Field

from musicsvc.server.schemas.answers import Answer, Success, Timestamp
from musicsvc.server.schemas.fields import TRIMMED, Body, NameText, Secret, replace_null
from musicsvc.store.accounts import tokens
from musicsvc.store.accounts.tokens import Scope, State

TokenName = Annotated[str, NameText(tokens.SHORTEST_NAME, tokens.LONGEST_NAME)]
VALUE = "msvc_" + "0" * 46


class TokenIn(Body):
    """An access token to create; the caller's `password` is required, so that a stolen token cannot create others."""

    name: TokenName = Field(examples=["laptop"])
    password: Secret = Field(examples=["three romances for violin"], json_schema_extra={"format": "password"})
    days: Annotated[int, Field(strict=True, ge=1, le=tokens.LONGEST_DAYS), replace_null(tokens.LONGEST_DAYS, int)] = (
        Field(tokens.LONGEST_DAYS, description="Days until the token expires.", examples=[30])
    )
    scope: Annotated[Scope, TRIMMED, replace_null("read-write", Scope)] = Field(
        "read-write", description="`read` allows GET, HEAD and exports only.", examples=["read"]
    )


class TokenCreated(Answer):
    """A new access token, without its value."""

    id: int
    name: str = Field(examples=["laptop"])
    expires_at: Timestamp


class NewToken(Success):
    """A response with a new access token and its value, which is not shown again."""

    access_token: TokenCreated
    plain_text_token: str = Field(examples=[VALUE])


class TokenListed(Answer):
    """An access token in the list of its account."""

    id: int
    name: str = Field(examples=["laptop"])
    last_four: str = Field(examples=["a1B2"])
    scope: Scope
    state: State
    created_at: Timestamp
    expires_at: Timestamp
    last_used_at: Timestamp | None
