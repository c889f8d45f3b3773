"""The columns of an account that all users may see."""

from typing import NamedTuple

from musicsvc.store.models import User


class UserSummary(NamedTuple):
    """The columns of an account that all users may see. `avatar` is None if the service generates the picture."""

    id: int
    display_name: str
    avatar: str | None


COLUMNS = (User.id, User.display_name, User.avatar)
