"""A limit on the framing of request bodies: the bytes of chunk sizes, chunk extensions and trailers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import hdrs
from aiohttp.web import RequestPayloadError

if TYPE_CHECKING:
    from aiohttp.streams import StreamReader
    from aiohttp.web import BaseRequest

MAX_FRAMING = 1024 * 1024  # bytes, including content that has arrived but is not parsed yet


class Framing:
    """A counter of the bytes that arrive for one request body, including its framing."""

    __slots__ = ("_arrived",)

    def __init__(self) -> None:
        self._arrived = 0

    def exceeds(self, content: StreamReader, size: int) -> bool:
        """Count `size` bytes that have arrived. If the framing exceeds MAX_FRAMING, fail the body and return True."""
        self._arrived += size
        if self._arrived <= content.total_bytes + MAX_FRAMING:
            return False
        content.set_exception(RequestPayloadError("more framing than content"))
        return True


def ends_unread_chunks(request: BaseRequest) -> bool:
    """End a chunked body that was not read completely, so that aiohttp stops parsing it. Return True if there was one.

    Parsing small chunks costs the event loop more than a second for each MiB of content.
    """
    unread = not request.content.is_eof() and hdrs.TRANSFER_ENCODING in request.headers
    if unread:
        request.content.feed_eof()
    return unread
