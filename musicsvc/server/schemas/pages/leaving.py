"""Forms to hand artists over, and to delete an account with its artists."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic

from musicsvc.server.schemas.fields import Text, parse_id
from musicsvc.server.schemas.pages.accounts import PasswordForm
from musicsvc.server.schemas.pages.form import Form
from musicsvc.store.editing.offers import NOTE_LENGTH
from musicsvc.wording import LONGEST_NAME

ARTIST = "artist."  # before the id of an artist: it is chosen


class OfferForm(Form):
    """The e-mail of the account that is to manage the artists: all, or `some` that are chosen (`read_chosen`)."""

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)

    email: Annotated[str, Text(1, LONGEST_NAME)]
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

    own_email: Annotated[str | None, Text(1, LONGEST_NAME)] = None
