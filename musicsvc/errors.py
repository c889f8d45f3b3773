"""The failures of the service, in the domain's own words; server and CLI map them once each."""

from collections.abc import Mapping
from typing import Literal


class Failure(Exception):
    """Something that a user can be told: `message` is one plain sentence.

    `here` is the sentence for who runs the program: it may name files and faults, which clients are not told.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = self.here = message


class Malformed(Failure):
    """The request cannot be read at all."""


class TooSlow(Failure):
    """The request did not arrive in time."""


class TooLarge(Failure):
    """What was sent is larger than what is taken."""


class UnsupportedMedia(Failure):
    """What was sent is not of a kind that is read here."""


class Invalid(Failure):
    """What was sent can be read, but breaks a rule; `errors` maps each faulty field to its message."""

    def __init__(self, errors: Mapping[str, str], message: str = "The given data was invalid.") -> None:
        super().__init__(message)
        self.errors = dict(errors)


class Unauthenticated(Failure):
    """The token is missing, or it was sent and is not valid; `reason` says why, None for a missing one."""

    def __init__(self, reason: Literal["unknown", "expired", "revoked"] | None = None) -> None:
        super().__init__("Unauthenticated.")
        self.reason = reason


class Forbidden(Failure):
    """The account may not do this."""


class NotFound(Failure):
    """There is no such thing, or the caller may not know that there is."""


class MethodNotAllowed(Failure):
    """The path exists, the method on it does not; `allowed` are those that do."""

    def __init__(self, allowed: list[str]) -> None:
        super().__init__(f"This path answers {', '.join(allowed)}.")
        self.allowed = allowed


class Conflict(Failure):
    """Sound by itself, but at odds with what is there already."""


class TooMany(Failure):
    """A limit is spent; try again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Damaged(Failure):
    """The database's file is broken; waiting does not help."""


class Unavailable(Failure):
    """The database, or something else that the work needs, cannot be used just now; nothing was changed."""

    def __init__(self, message: str | None = None, here: str | None = None) -> None:
        super().__init__(message or "The database is not available.")
        self.here = here or message or "The database is busy or cannot be written. Try again shortly."


class Overloaded(Failure):
    """Too much work of one kind is under way; nothing was changed. Try again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after
