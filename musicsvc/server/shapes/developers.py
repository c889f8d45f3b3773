"""Access tokens and the state of API access, as the page for developers shows them."""

from dataclasses import dataclass
from typing import Literal

from musicsvc.clock import DAY, MINUTE
from musicsvc.store.accounts import tokens
from musicsvc.store.accounts.tokens import State
from musicsvc.store.models import AccessRequest, Token, User
from musicsvc.wording import quantity

AccessState = Literal["granted", "pending", "denied", "withdrawn", "none"]
Notice = Literal["day", "week", "fortnight"]
WARNINGS: tuple[tuple[int, Notice], ...] = ((DAY, "day"), (7 * DAY, "week"), (14 * DAY, "fortnight"))
UNITS = ((DAY, "day"), (60 * MINUTE, "hour"), (MINUTE, "minute"))
SCOPES = {"read-write": "Read and write", "read": "Read only"}


@dataclass(frozen=True, slots=True)
class ShownToken:
    """An access token on a page. `requests`: the number of requests in the last 7 days, or None if unknown."""

    token: Token
    state: State
    scope: str
    expires: str  # such as `in 12 days`
    warning: Notice | None
    requests: int | None


def shown(token: Token, now: int, requests: int | None) -> ShownToken:
    state = tokens.state(token, now)
    warning = warning_of(token.expires_at - now) if state == "valid" else None
    return ShownToken(token, state, SCOPES[token.scope], moment_from(token.expires_at - now), warning, requests)


def warning_of(left: int) -> Notice | None:
    """Return the expiry warning to show for a token, or None. `left`: microseconds until the token expires."""
    return next((warning for length, warning in WARNINGS if left <= length), None)


def moment_from(left: int) -> str:
    """Format a time relative to now, such as `in 12 days` or `3 hours ago`. `left`: microseconds, negative if past."""
    size, unit = next((found for found in UNITS if abs(left) >= 2 * found[0]), UNITS[-1])
    text = quantity((abs(left) + size // 2) // size, unit)  # rounded, as a token of 90 days is a few seconds old
    return f"in {text}" if left > 0 else f"{text} ago"


def access_state(user: User, latest: AccessRequest | None) -> AccessState:
    """Return the state of the account's API access. `latest`: the account's newest request for access."""
    if user.api_access:
        return "granted"
    if latest is None:
        return "none"
    states: dict[str, AccessState] = {"pending": "pending", "denied": "denied"}
    return states.get(latest.state, "withdrawn")
