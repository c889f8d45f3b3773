"""Forms of players and of pending listens."""

from typing import Annotated

from musicsvc.server.schemas.accounts import TokenName
from musicsvc.server.schemas.fields import Secret, Text
from musicsvc.server.schemas.pages.form import Form
from musicsvc.store.catalog import names


class PlayerForm(Form):
    """A player to connect, with the password of its owner."""

    name: TokenName
    password: Secret


class NameForm(Form):
    """The track that pending listens name: its name, or its id."""

    track: Annotated[str, Text(1, names.LONGEST)]
