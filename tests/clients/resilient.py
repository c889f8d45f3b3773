"""Requests of a generated client that survive faults of the network and of the server."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

import httpx
from generated.models import Error, InsightsError, Unauthenticated
from generated.types import Response

T = TypeVar("T")


class Refused(Exception):
    """The server refused a request. `problem`: the body, unless the document lacks this status."""

    def __init__(self, status: int, problem: Error | InsightsError | Unauthenticated | None) -> None:
        super().__init__(problem.message if problem else f"HTTP status {status}")
        self.status, self.problem = status, problem


class Unknown(Exception):
    """A request may have been executed or not."""


PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
NOTHING: Response[Any] = Response(HTTPStatus.BAD_GATEWAY, b"", {}, None)


def send(
    kind: type[T],
    call: Callable[[], Response[Any]],
    wait: Callable[[float], object],
    *,
    repeatable: bool,
    sign_in: Callable[[], object] | None = None,
) -> T:
    """Send a request until it is accepted, and return its body. `repeatable`: executing it twice does no harm."""
    for pause in PAUSES:
        try:
            response = call()
        except (httpx.TransportError, ValueError):  # the connection ended early, or this is the page of a proxy
            response = NOTHING
        status = response.status_code
        if isinstance(response.parsed, kind):
            return response.parsed
        if status == HTTPStatus.UNAUTHORIZED and sign_in:
            sign_in()
            continue
        if status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.TOO_MANY_REQUESTS:
            raise Refused(status, response.parsed)
        wait(float(response.headers.get("Retry-After", pause)))
        if status != HTTPStatus.TOO_MANY_REQUESTS and not repeatable:
            break
    raise Unknown


def settle(look: Callable[[], T | None], act: Callable[[], object]) -> T:
    """Return what `look` finds; act until it finds something. An earlier try may be the cause, or a copy of it."""
    for _ in range(10):
        if found := look():
            return found
        try:
            act()
        except Unknown:
            continue
        except Refused:
            if found := look():
                return found
            raise
    raise Unknown
