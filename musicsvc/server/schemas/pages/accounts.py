"""Forms of the user's own account: registration, password, display name."""

from typing import Annotated

from musicsvc.server.schemas.accounts import RegisterIn
from musicsvc.server.schemas.fields import Secret, Text
from musicsvc.server.schemas.pages.form import Form
from musicsvc.store.accounts import users


class RegisterForm(RegisterIn, Form):
    """The form to register, with the same fields and rules as registration over the API."""


class NewPasswordForm(Form):
    """A password to set by a one-time link."""

    new_password: Secret


class ChangePasswordForm(NewPasswordForm):
    """The current and the new password."""

    password: Secret


class DisplayNameForm(Form):
    display_name: Annotated[str, Text(1, users.NAME_LENGTH)]
