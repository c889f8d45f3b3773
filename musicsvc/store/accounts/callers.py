"""The account that acts, whether it has sent a token or signed in."""

from typing import Protocol


class Caller(Protocol):
    """An `Identity` of a token, or a `SessionIdentity`."""

    @property
    def user_id(self) -> int: ...

    @property
    def admin(self) -> bool: ...
