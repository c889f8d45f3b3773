"""Limit the framing overhead of chunked request bodies: the bytes of chunk sizes, chunk extensions and trailers."""

from aiohttp import hdrs
from aiohttp.streams import StreamReader
from aiohttp.web import BaseRequest, RequestPayloadError

MAX_FRAMING = 1024 * 1024  # bytes, including content that has arrived but is not parsed yet


class Framing:
    """Counts the bytes that arrive for one request body: its content and its framing."""

    __slots__ = ("_arrived",)

    def __init__(self) -> None:
        self._arrived = 0

    def exceeds(self, content: StreamReader, size: int) -> bool:
        """Count `size` more bytes. If the framing exceeds MAX_FRAMING, make reading the body fail, and return True."""
        self._arrived += size
        if self._arrived <= content.total_bytes + MAX_FRAMING:
            return False
        content.set_exception(RequestPayloadError("more framing than content"))
        return True


def ends_unread_chunks(request: BaseRequest) -> bool:
    """If a chunked body was not read to its end, make aiohttp stop parsing it, and return True."""
    unread = not request.content.is_eof() and hdrs.TRANSFER_ENCODING in request.headers
    if unread:
        request.content.feed_eof()  # parsing small chunks would block the event loop for a second per MiB
    return unread
