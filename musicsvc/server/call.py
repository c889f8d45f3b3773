"""The record of one request, filled in while it is answered, for the activity log, metrics and rate limits."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musicsvc.server.responses.memory_budget import Reservation
    from musicsvc.server.routes.route import Route
    from musicsvc.store.rate_limits.window import Hit

BUSY = "busy"

# The id of the request that this task answers, for log lines.
request_id: ContextVar[str | None] = ContextVar("musicsvc_request_id", default=None)


@dataclass(slots=True)
class Call:
    """One request, complete once it is answered.

    - `at`: when it arrived, in microseconds; `began`: the same in monotonic seconds.
    - `resource`: the object that the path or the body names, such as `playlists/7`. None without one that can exist.
    - `judged`: whether rate limits and abuse handling apply to it.
    - `token_holder`: whether a valid token with API access was sent, even to an endpoint that needs none.
    - `refused_by`: the rate limit that was exceeded, or BUSY where there was no capacity for the work.
    - `counted`: the rate limits that counted the request.
    """

    at: int
    began: float
    request_id: str
    method: str
    address: str = ""
    route: Route | None = None
    account_id: int | None = None
    token_id: int | None = None
    resource: str | None = None
    judged: bool = False
    token_holder: bool = False
    status: int = 0
    size: int = 0
    milliseconds: float = 0.0
    retry_after: int | None = None
    refused_by: str | None = None
    counted: Sequence[Hit] = ()
    headers: dict[str, str] = field(default_factory=dict)
    reservation: Reservation | None = None


class Observer(Protocol):
    """A function called on the event loop with each answered call."""

    def __call__(self, call: Call) -> None:
        """Record the call, without waiting and without raising."""
