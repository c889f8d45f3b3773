"""Requests and responses of accounts: registration, sign-in, access tokens, search."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from musicsvc.server.schemas.answers import Answer, Success, Timestamp, UserSummary
from musicsvc.server.schemas.fields import (
    DIGITS_ONLY,
    TRIMMED,
    Body,
    Email,
    NameText,
    Query,
    Secret,
    Text,
    replace_null,
)
from musicsvc.store.accounts import api_access, email_addresses, passwords, tokens, users
from musicsvc.store.accounts.api_access import RequestState
from musicsvc.store.accounts.tokens import Scope, State

TokenName = Annotated[str, NameText(tokens.SHORTEST_NAME, tokens.LONGEST_NAME)]
Days = Annotated[int, Field(strict=True, ge=1, le=tokens.LONGEST_DAYS)]
VALUE = "msvc_" + "0" * 46


class RegisterIn(Body):
    """An account to register; if `token_name` is sent, an access token with this name is created."""

    email: Email = Field(examples=["clara@example.test"], json_schema_extra={"format": "email"})
    password: Secret = Field(
        examples=["three romances for violin"],
        json_schema_extra={"format": "password", "minLength": passwords.SHORTEST, "maxLength": passwords.LONGEST},
    )
    token_name: TokenName | None = Field(None, examples=["my first token"])

    @field_validator("email")
    @classmethod
    def _email_syntax(cls, value: str) -> str:
        if problem := email_addresses.problem(value):
            raise ValueError(problem)
        return value

    @field_validator("password")
    @classmethod
    def _password_rule(cls, value: str, info: ValidationInfo) -> str:
        hosted = bool((info.context or {}).get("hosted"))
        if problem := passwords.check(value, email=info.data.get("email", ""), hosted=hosted):
            raise ValueError(problem)
        return value

    @classmethod
    def check_against_store(cls, sent: dict[str, Any], faults: dict[str, str], subject: Any = None) -> dict[str, str]:  # noqa: ARG003 - comments use it
        """Return an error message for `email` if another account uses the address, else an empty dict."""
        if "email" not in faults and users.is_taken(sent["email"]):
            return {"email": users.TAKEN}
        return {}


class RegisteredUser(UserSummary):
    """A new account; `access_token` is present only if the request had a `token_name`."""

    access_token: str = Field("", examples=[VALUE])


class LoginIn(Body):
    """The e-mail and password of an account, and the name of the access token to create for it."""

    email: Email = Field(examples=["demo@musicsvc.test"])
    password: Secret = Field(examples=["three romances for violin"], json_schema_extra={"format": "password"})
    token_name: TokenName = Field(examples=["my phone"])


class LoggedInUser(UserSummary):
    """An account with a new access token."""

    access_token: str = Field(examples=[VALUE])


class LoggedIn(Success):
    """A response with an account and a new access token, which is not shown again."""

    user: LoggedInUser


class Registered(Success):
    """A response with the new account."""

    user: RegisteredUser


class TokenIn(Body):
    """An access token to create; the caller's `password` is required, so that a stolen token cannot create others."""

    name: TokenName = Field(examples=["laptop"])
    password: Secret = Field(examples=["three romances for violin"], json_schema_extra={"format": "password"})
    days: Annotated[Days, replace_null(tokens.LONGEST_DAYS, Days)] = Field(
        tokens.LONGEST_DAYS, description="Days until the token expires.", examples=[30]
    )
    scope: Annotated[Scope, TRIMMED, replace_null("read-write", Scope)] = Field(
        "read-write",
        description="`read` allows GET, HEAD and exports only, `listen` only the listens of a player.",
        examples=["read"],
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


class AccessIn(Body):
    """A request for API access, on which an administrator decides."""

    use_case: Annotated[str, Text(1, api_access.LONGEST["use_case"])] = Field(examples=["A page of my label's figures"])
    organization: Annotated[str, Text(1, api_access.LONGEST["organization"])] = Field(examples=["Example Records"])
    volume: Annotated[str, Text(1, api_access.LONGEST["volume"])] = Field(
        description="The expected number of requests, or the amount of music.", examples=["5,000 requests a day"]
    )


class AccessRequested(Answer):
    """A request for API access; `reason` is given for denied ones."""

    id: int
    state: RequestState = Field(examples=["denied"])
    created_at: Timestamp
    reason: str | None = Field(examples=["Please describe the use case."])


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
