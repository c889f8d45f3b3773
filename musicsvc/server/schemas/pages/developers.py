"""Forms of the page for developers."""

from typing import Annotated

from pydantic import Field

from musicsvc.server.schemas.fields import DIGITS_ONLY, Secret, Text
from musicsvc.server.schemas.pages.form import Form
from musicsvc.server.schemas.tokens import TokenName
from musicsvc.store.accounts import api_access, tokens
from musicsvc.store.accounts.tokens import Scope


class AccessForm(Form):
    """A request for API access."""

    use_case: Annotated[str, Text(1, api_access.LONGEST["use_case"])]
    volume: Annotated[str, Text(1, api_access.LONGEST["volume"])]
    organization: Annotated[str, Text(1, api_access.LONGEST["organization"])]


class TokenForm(Form):
    """An access token to create, with the password of its owner."""

    name: TokenName
    days: Annotated[int, Field(ge=1, le=tokens.LONGEST_DAYS), DIGITS_ONLY] = tokens.LONGEST_DAYS
    scope: Scope = "read-write"
    password: Secret


class PasswordForm(Form):
    """The password of the signed-in account."""

    password: Secret
