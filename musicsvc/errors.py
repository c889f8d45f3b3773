"""The exceptions of the service, which the server maps to statuses and the CLI to exit codes."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

T = TypeVar("T")


class Failure(Exception):
    """An error with a message for users. `here`: the message for the operator, with details that users must not see."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = self.here = message


class Later(Failure):
    """Base of failures after which the same request may succeed after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Malformed(Failure):
    """The request is malformed."""


class TooSlow(Failure):
    """The request did not arrive in time."""


class TooLarge(Failure):
    """The request exceeds a size limit."""


class UnsupportedMedia(Failure):
    """The media type of the request is not supported."""


class Invalid(Failure):
    """The request is well-formed but breaks a rule. `errors` maps each invalid field to its message."""

    def __init__(self, errors: Mapping[str, str], message: str = "The given data was invalid.") -> None:
        super().__init__(message)
        self.errors = dict(errors)


def require_valid(problems: Mapping[str, str | None]) -> None:
    """Raise Invalid if one of the fields has a problem."""
    if errors := {field: problem for field, problem in problems.items() if problem}:
        raise Invalid(errors)


class Unauthenticated(Failure):
    """The token is missing (`reason` is None) or invalid (`reason`: unknown, revoked or expired)."""

    def __init__(self, reason: Literal["unknown", "expired", "revoked"] | None = None) -> None:
        super().__init__("Unauthenticated.")
        self.reason = reason


class Forbidden(Failure):
    """The account may not do this."""


class NotFound(Failure):
    """The resource does not exist, or the caller must not know that it exists."""

    def __init__(self, message: str = "There is nothing at this path.") -> None:
        super().__init__(message)


def existing(found: T | None, message: str) -> T:
    """Return `found`. Raises NotFound with this message if it is None."""
    if found is None:
        raise NotFound(message)
    return found


def first(rows: Iterable[T], message: str) -> T:
    """Return the first of the rows. Raises NotFound with this message if there is none."""
    return existing(next(iter(rows), None), message)


class MethodNotAllowed(Failure):
    """The path does not support the HTTP method. `allowed` lists the supported methods."""

    def __init__(self, allowed: list[str]) -> None:
        super().__init__(f"The method is not allowed here. This path supports {', '.join(allowed)}.")
        self.allowed = allowed


class Conflict(Failure):
    """The request conflicts with the current state."""


class InProgress(Later, Conflict):
    """A request that this one repeats is still running; its answer may be there after `retry_after` seconds."""


class MissingReference(Failure):
    """A row that the change refers to was deleted meanwhile; nothing was changed."""

    def __init__(self) -> None:
        super().__init__("Something that this refers to was deleted meanwhile. Nothing was changed; try again.")


class TooMany(Later):
    """A rate limit is exceeded; retry after `retry_after` seconds."""


class NoDatabase(Failure):
    """There is no database at this place, or one without tables."""


class Outdated(Failure):
    """A database or an activity log has the schema of another version, or is not complete yet."""


class Damaged(Failure):
    """A file is damaged; retrying does not help."""


class Unavailable(Failure):
    """The database or another resource cannot be used at the moment; nothing was changed."""

    def __init__(self, message: str | None = None, here: str | None = None) -> None:
        super().__init__(message or "The database is not available.")
        self.here = here or message or "The database is busy or cannot be written. Try again shortly."


class ReadOnly(Unavailable):
    """The database can be read, and accepts no changes at the moment."""

    def __init__(self, here: str) -> None:
        super().__init__("The database accepts no changes at the moment.", here)


class Overloaded(Later):
    """There is no capacity for this work at the moment; nothing was changed. Retry after `retry_after` seconds."""


class Crowded(Overloaded):
    """The client holds as much of the capacity for this work as it may while others want some.

    The request counts toward the endpoint's own rate limit.
    """
