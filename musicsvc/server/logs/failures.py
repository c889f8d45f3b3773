"""What clients are told of failures, and what only the log gets."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from musicsvc.errors import Failure, Unavailable
from musicsvc.server.responses.errors import status_of

if TYPE_CHECKING:
    from musicsvc.clock import Clock
    from musicsvc.server.call import Call

log = logging.getLogger("musicsvc")
INTERNAL = 500
REPEAT_SECONDS = 10.0


class FailureLog:
    """Logs the details of failures that name files, hosts and settings; clients get a sentence without them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._warned = float("-inf")

    def for_client(self, failure: Failure, call: Call) -> Failure:
        """Return the failure to answer with, and log the details that it leaves out."""
        if status_of(failure) == INTERNAL:
            log.error("request %s failed: %s", call.request_id, failure.here)
            return apology(call)
        if isinstance(failure, Unavailable) and failure.here != failure.message:
            self._warn(failure.here)
        return failure

    def _warn(self, reason: str) -> None:
        """Log the reason; an outage that refuses every request is logged every few seconds."""
        now = self._clock.monotonic()
        if now - self._warned >= REPEAT_SECONDS:
            self._warned = now
            log.warning("Requests are answered 503: %s", reason)


def apology(call: Call) -> Failure:
    """Return the failure that a client reads where the fault is the service's own."""
    return Failure(f"Something went wrong here. Name request {call.request_id} to the operator.")
