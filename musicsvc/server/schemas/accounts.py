"""Requests to register an account and to sign in, and their responses."""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from musicsvc.server.schemas.answers import Success, UserSummary
from musicsvc.server.schemas.fields import Body, Secret, Text
from musicsvc.server.schemas.tokens import VALUE, TokenName
from musicsvc.store.accounts import email_addresses, passwords, users


class RegisterIn(Body):
    """An account to register; if `token_name` is sent, an access token with this name is created."""

    email: Annotated[str, Text(1, email_addresses.LENGTH)] = Field(
        examples=["clara@example.test"], json_schema_extra={"format": "email"}
    )
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

    email: Annotated[str, Text(1, email_addresses.LENGTH)] = Field(examples=["demo@musicsvc.test"])
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
