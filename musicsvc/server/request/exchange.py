"""One request and its response: what the head says, what the checks have found, and what the handler gets."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp.web import BaseRequest

from musicsvc.server.call import Call
from musicsvc.server.peer import Peer
from musicsvc.server.responses.answer_cache import Slot
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.parsed_body import ParsedBody
from musicsvc.server.shapes.envelope import Representation


class Head(NamedTuple):
    """The parsed head of a request (request line and headers), with the client of its connection (`peer`)."""

    target: str  # path and query
    route: Route
    values: Mapping[str, str]  # of the parameters of the path
    peer: Peer
    credentials: str | None  # the Authorization header
    resource: str | None  # the object that the path names, such as `playlists/7`
    cross_origin: Mapping[str, str]  # headers of the response, for browser code of other origins


@dataclass(slots=True)
class Exchange:
    """A request on its way through the checks to its response.

    `request`: unset as long as the request may be answered from memory, and so is `path`, its path without the base
    path. `waiting`: the first checks, if they are under way; `failure`: they have refused the request.
    """

    call: Call
    head: Head = field(init=False)
    request: BaseRequest = field(init=False)
    path: str = field(init=False)
    parsed: ParsedBody | None = None
    given: dict[str, Any] = field(default_factory=dict)  # further arguments for handlers by parameter name
    slot: Slot | None = None  # the place of the response in the cache
    found: Representation | None = None  # the response from memory
    waiting: asyncio.Future[None] | None = None
    failure: BaseException | None = None
