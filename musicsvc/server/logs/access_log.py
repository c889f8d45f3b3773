"""The access log: one line per request if `log.requests` is on."""

import logging

from musicsvc.server.call import Call
from musicsvc.server.logs.setup import REQUESTS

log = logging.getLogger(REQUESTS)
LONGEST_METHOD = 16


def write(call: Call) -> None:
    """Log a call with the same data as the activity log: no query string, token value or body."""
    log.info(
        "request",
        extra={
            "at": call.at,
            "request_id": call.request_id,
            "account": call.account_id,
            "token": call.token_id,
            "address": call.address,
            "method": call.method[:LONGEST_METHOD],
            "route": call.route.path if call.route is not None else None,
            "status": call.status,
            "milliseconds": round(call.milliseconds, 3),
            "bytes": call.size,
        },
    )
