"""What is noted of a request while it is answered: for the activity log, the metrics and the limits."""

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

# The id of the request that is answered just now, for messages that are logged on the way.
request_id: ContextVar[str | None] = ContextVar("musicsvc_request_id", default=None)


@dataclass(slots=True)
class Call:
    """One request; filled on its way, complete once it is answered.

    `at`: instant in microseconds; `began`: monotonic seconds; `resource`: the object that the path names, or else the
    body, such as `playlists/7`, None where they name none that can exist; `judged`: whether limits and abuse handling
    hold for it; `token_holder`: whether a valid token with API access was sent, also where none is asked for;
    `refused_by`: the limit that is spent, or BUSY where there was no capacity for the work; `counted`: the limits that
    it counts to.
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
    """Is told of each call once it is answered, on the event loop."""

    def __call__(self, call: Call) -> None:
        """Take note of the call; neither waits nor fails."""
