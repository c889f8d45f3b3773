"""One request: its record for the activity log, metrics and rate limits, and the exchange that its stages share."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from aiohttp.web import BaseRequest

from musicsvc.networks import client_network
from musicsvc.server.browsers import Browser
from musicsvc.server.peer import HSTS, Peer
from musicsvc.server.responses.answer_cache import Slot
from musicsvc.server.responses.handling import USUAL, Handling
from musicsvc.server.responses.large import Reservation
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.reading import ParsedBody
from musicsvc.server.shapes.envelope import Representation
from musicsvc.store.rate_limits.window import Hit

BUSY = "busy"
CLIENT_CLOSED = 499  # the recorded status if the client disconnected before the response
REQUEST_SECONDS = 8.0  # for all units of work of a request
ACCEPTED, FAILED_SIGN_IN = "accepted", "failed_sign_in"  # in `Call.tally`; all else there are reasons of refused plays


@dataclass(slots=True)
class Call:
    """The record of one request and its response. It is complete once the response is known."""

    at: int  # when the request arrived, in microseconds since 1970
    began: float  # the same moment in seconds of the monotonic clock
    request_id: str
    method: str
    address: str = ""
    route: Route | None = None
    account_id: int | None = None
    token_id: int | None = None  # of a valid token with API access
    session_id: int | None = None  # of a signed-in browser; only pages have sessions
    resource: str | None = None  # the object that the path or the body names, such as `playlists/7`
    caller: Any = None  # the `Identity` or `SessionIdentity` that may use the route
    limits_apply: bool = False  # rate limits and abuse rules apply; clients on this machine can be exempt
    token_holder: bool = False  # a valid token with API access was sent, even if none was needed
    status: int = 0
    size: int = 0
    milliseconds: float = 0.0
    retry_after: int | None = None
    refused_by: str | None = None  # the name of the exceeded rate limit, or BUSY for lack of capacity
    tally: Mapping[str, int] | None = None  # numbers for metrics, by name: failed sign-ins, or see `Route.tally`
    counted: Sequence[Hit] = ()  # the rate limits toward which the request was counted
    # Headers of any response; they are shared, so never changed in place.
    first: Mapping[str, str] = field(default_factory=dict)
    limits: str = ""  # the headers that describe the rate limits, which come next, as lines
    reservation: Reservation | None = None
    renewed: float = -inf  # when the time of its units of work began, if not on its arrival

    @property
    def headers(self) -> dict[str, str]:
        """The headers of any response that are known so far."""
        return {**self.first, **dict(line.split(": ", 1) for line in self.limits.splitlines())}

    def add_headers(self, headers: Mapping[str, str]) -> None:
        self.first = {**self.first, **headers}

    def renew(self, now: float) -> None:
        """Begin the time that the units of work may take, on arrival of the request and of its body."""
        self.renewed = now

    def remaining(self, now: float) -> float:
        """Return the seconds that its units of work may still take."""
        return max(self.began, self.renewed) + REQUEST_SECONDS - now

    @property
    def holder(self) -> str | None:
        """The client that a response belongs to: a token, the account of a session, or None for the address."""
        if self.token_id is not None:
            return f"token {self.token_id}"
        return None if self.session_id is None else f"account {self.account_id}"

    @property
    def client(self) -> str:
        """The client that a place in a line belongs to: an account, or the address of everybody else."""
        return f"account {self.account_id}" if self.token_holder else client_network(self.address)


# A function that is called on the event loop with each completed call, and must neither block nor raise.
Observer = Callable[[Call], None]


@dataclass(slots=True)
class Head:
    """The parsed head of a request (request line and headers)."""

    target: str  # path and query
    route: Route
    values: Mapping[str, str]  # of the parameters of the path
    credentials: str | None  # the Authorization header
    resource: str | None  # the object that the path names, such as `playlists/7`
    headers: Mapping[str, str]  # of any response to it
    handling: Handling = USUAL  # known once the request is admitted


@dataclass(slots=True)
class Exchange:
    """A request on its way through the stages to its response.

    `request`: unset as long as the request may be answered from memory, and so is `path`, its path without the base
    path. `waiting`: the admission, if it is under way; `failure`: the request was not admitted.
    """

    call: Call
    peer: Peer
    head: Head = field(init=False)
    request: BaseRequest = field(init=False)
    path: str = field(init=False)
    browser: Browser | None = None  # of a page
    received: bytearray | None = None  # gets the bytes of the body, if a stage has set it
    parsed: ParsedBody | None = None
    key: str | None = None  # of a request that may be sent again; empty if it is malformed
    body_hash: bytes = b""  # the SHA-256 of the body of a request with a key
    given: dict[str, Any] = field(default_factory=dict)  # further arguments for handlers by parameter name
    slot: Slot | None = None  # the place of the response in the cache
    found: Representation | None = None  # the response from memory
    waiting: asyncio.Future[None] | None = None
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        """Note the client in the record of the request."""
        call, peer = self.call, self.peer
        call.address, call.limits_apply = peer.address, peer.limits_apply
        if peer.hsts:
            call.add_headers(HSTS)
