"""The form to sign in."""

import re
from typing import Annotated

from pydantic import BeforeValidator

from musicsvc.server.schemas.fields import Query, Secret, Text
from musicsvc.server.schemas.pages.form import Form
from musicsvc.store.accounts import email_addresses

LONGEST_PATH = 2_048
# Browsers treat `\` like `/`, and remove control characters before they read a URL.
OWN_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


def own_path(text: str) -> str | None:
    """Return the text if it is a path of this service, else None."""
    return text if len(text) <= LONGEST_PATH and OWN_PATH.fullmatch(text) else None


class SignInQuery(Query):
    """The page to show after sign-in, a path of this service, or None."""

    next: Annotated[str | None, BeforeValidator(own_path)] = None


class SignInForm(Form):
    email: Annotated[str, Text(1, email_addresses.LENGTH)]
    password: Secret
