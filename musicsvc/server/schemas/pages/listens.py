"""Forms of players and of pending listens."""

from typing import Annotated

from pydantic import Field

from musicsvc.server.schemas.accounts import TokenName
from musicsvc.server.schemas.fields import DIGITS_ONLY, MAX_PAGE, Query, Secret, Text
from musicsvc.server.schemas.pages.form import Form
from musicsvc.store.catalog import names


class ListensQuery(Query):
    """The number of the page."""

    page: Annotated[int, Field(ge=1, le=MAX_PAGE), DIGITS_ONLY] = 1


class PlayerForm(Form):
    """A player to connect, with the password of its owner."""

    name: TokenName
    password: Secret


class NameForm(Form):
    """The track that pending listens name: its name, or its id."""

    track: Annotated[str, Text(1, names.LONGEST)]
