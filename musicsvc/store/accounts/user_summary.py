"""The few columns of an account that others see, wherever an account is shown."""

from __future__ import annotations

from typing import NamedTuple

from musicsvc.store.models import User


class UserSummary(NamedTuple):
    """An account as others see it; `avatar` is None where the service draws it."""

    id: int
    display_name: str
    avatar: str | None


COLUMNS = (User.id, User.display_name, User.avatar)
