"""Forms of the user's own account: registration, sign-in, password, display name, API access, tokens and listens.

With the forms to leave: to hand artists over, and to delete the account with its artists.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from musicsvc.clock import HOUR
from musicsvc.server.schemas.accounts import AccessIn, RegisterIn, TokenName
from musicsvc.server.schemas.fields import DIGITS_ONLY, Email, NameText, PageNumber, Query, Secret, Text, parse_id
from musicsvc.server.schemas.pages.form import Form
from musicsvc.store.accounts import tokens, users
from musicsvc.store.accounts.tokens import Scope
from musicsvc.store.accounts.users import Purpose
from musicsvc.store.catalog import names
from musicsvc.store.editing.offers import NOTE_LENGTH

ARTIST = "artist."  # before the id of an artist: it is chosen
LONGEST_PATH = 2_048
# Browsers treat `\` like `/`, and remove control characters before they read a URL.
OWN_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


class PurposeForm(Form):
    """The purpose of an account."""

    purpose: Purpose


class RegisterForm(RegisterIn, Form):
    """The form to register: the fields and rules of registration over the API, and a name and purpose, if given."""

    display_name: Annotated[str, NameText(1, users.NAME_LENGTH)] | None = None
    purpose: Purpose | None = None


class NewPasswordForm(Form):
    """A password to set by a one-time link."""

    new_password: Secret


class ChangePasswordForm(NewPasswordForm):
    """The current and the new password."""

    password: Secret


class DisplayNameForm(Form):
    display_name: Annotated[str, NameText(1, users.NAME_LENGTH)]


def own_path(text: str) -> str | None:
    """Return the text if it is a path of this service, else None."""
    return text if len(text) <= LONGEST_PATH and OWN_PATH.fullmatch(text) else None


class SignInQuery(Query):
    """The page to show after sign-in, a path of this service, or None."""

    next: Annotated[str | None, BeforeValidator(own_path)] = None


class SignInForm(Form):
    email: Email
    password: Secret


class AccessForm(AccessIn, Form):
    """A request for API access, with the same fields and rules as over the API."""


class TokenForm(Form):
    """An access token to create, with the password of its owner."""

    name: TokenName
    days: Annotated[int, Field(ge=1, le=tokens.LONGEST_DAYS), DIGITS_ONLY] = tokens.LONGEST_DAYS
    scope: Scope = "read-write"
    password: Secret


class PasswordForm(Form):
    """The password of the signed-in account."""

    password: Secret


class RegenerateForm(PasswordForm):
    """The hours for which the old value of a token is accepted, with the password of its owner."""

    overlap: Annotated[int, Field(ge=0, le=tokens.LONGEST_OVERLAP // HOUR), DIGITS_ONLY] = 0


class ListensQuery(Query):
    """The number of the page."""

    page: PageNumber = 1


class PlayerForm(Form):
    """A player to connect, with the password of its owner."""

    name: TokenName
    password: Secret


class NameForm(Form):
    """The track that pending listens name: its name, or its id."""

    track: Annotated[str, Text(1, names.LONGEST)]


class OfferForm(Form):
    """The e-mail of the account that is to manage the artists: all, or `some` that are chosen (`read_chosen`)."""

    model_config = ConfigDict(extra="allow", frozen=True)

    email: Email
    which: Literal["all", "some"] = "all"


def read_chosen(sent: Mapping[str, Any]) -> set[int]:
    """Return the ids of the artists that are ticked, in `artist.7` and so on."""
    ids = (parse_id(name.removeprefix(ARTIST)) for name in sent if name.startswith(ARTIST))
    return {number for number in ids if number is not None}


class AskForm(Form):
    """A request to the administrators to take all artists."""

    note: Annotated[str | None, Text(1, NOTE_LENGTH)] = None


class DeleteForm(PasswordForm):
    """The password of the account and, to delete its artists with it, its e-mail."""

    own_email: Email | None = None
