"""Error responses without internal details, which are logged instead."""

import logging

from musicsvc.clock import Clock
from musicsvc.errors import Failure, Unavailable
from musicsvc.server.call import Call
from musicsvc.server.logs.throttled_warning import ThrottledWarning
from musicsvc.server.responses.errors import status_of

log = logging.getLogger("musicsvc")
INTERNAL = 500
REPEAT_SECONDS = 10.0


class FailureLog:
    def __init__(self, clock: Clock) -> None:
        self._warning = ThrottledWarning(REPEAT_SECONDS, clock.monotonic)  # in an outage every request fails

    def for_client(self, failure: Failure, call: Call) -> Failure:
        """Return the failure to send to the client, and log the details that it leaves out."""
        if status_of(failure) == INTERNAL:
            log.error("request %s failed: %s", call.request_id, failure.here)
            return apology(call)
        if isinstance(failure, Unavailable) and failure.here != failure.message:
            self._warning.warn("answering requests with 503: %s", failure.here)
        return failure


def apology(call: Call) -> Failure:
    """Return the error to send to the client after an unexpected exception in the service."""
    return Failure(f"An internal error occurred. Report request {call.request_id} to the operator.")
