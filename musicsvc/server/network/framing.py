"""A bound on what a request's body costs beside its content: chunk sizes, chunk extensions, trailers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import hdrs
from aiohttp.web import RequestPayloadError

if TYPE_CHECKING:
    from aiohttp.streams import StreamReader
    from aiohttp.web import BaseRequest

MAX_FRAMING = 1024 * 1024  # what is received but not parsed yet counts, too


class Framing:
    """Counts the bytes that arrive for the body of one request."""

    __slots__ = ("_arrived",)

    def __init__(self) -> None:
        self._arrived = 0

    def outweighs(self, content: StreamReader, size: int) -> bool:
        """Add bytes that have arrived; end the content and return True where far more of them are framing."""
        self._arrived += size
        if self._arrived <= content.total_bytes + MAX_FRAMING:
            return False
        content.set_exception(RequestPayloadError("more framing than content"))
        return True


def ends_unread_chunks(request: BaseRequest) -> bool:
    """End a chunked body that nobody has read to its end, which aiohttp would go on parsing; return whether it is one.

    Parsing small chunks costs the event loop more than a second for each MiB of content.
    """
    unread = not request.content.is_eof() and hdrs.TRANSFER_ENCODING in request.headers
    if unread:
        request.content.feed_eof()
    return unread
