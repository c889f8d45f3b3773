"""Reading of request bodies, JSON or forms, with limits on size, time and number of chunks."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from aiohttp import HttpVersion11, hdrs
from aiohttp.web import BaseRequest, RequestPayloadError

from musicsvc.config import Settings
from musicsvc.errors import Malformed, Overloaded, TooLarge, TooSlow, UnsupportedMedia
from musicsvc.server.call import Exchange
from musicsvc.server.request import keys, parameters
from musicsvc.server.request.executors import Executors, Work
from musicsvc.server.schemas.fields import Body
from musicsvc.server.schemas.pages.form import Form, parse_form
from musicsvc.server.schemas.reading import ParsedBody, parse_body

TOO_LARGE = "The body is larger than {} MiB."
MIB = 1024 * 1024
MAX_CHUNKS = 2048
PROMPT_ARRIVALS = 64  # pieces of a body that are read as soon as they arrive
PAUSE_SECONDS = 0.05  # between pieces after the first PROMPT_ARRIVALS
MAX_HELD = 32 * 1024 * 1024  # bytes, for all bodies in progress together
SMALL = 16 * 1024  # bytes; smaller bodies are parsed on the event loop and are ignored by MAX_HELD
JSON_KIND = re.compile(r"application/(json|[a-z0-9.-]+\+json)")
FORM_TYPE = "application/x-www-form-urlencoded"
CHARSETS = {"utf-8", "utf8", "us-ascii"}  # accepted names


class Bodies:
    """Reads request bodies. All bodies together take at most 32 MiB, not counting the first 16 KiB of each."""

    def __init__(self, settings: Settings, executors: Executors) -> None:
        self._hosted = settings.hosted
        self._timeout = settings.server.body_timeout  # the seconds in which a whole body must arrive
        self._executors = executors
        self._free = MAX_HELD

    def context(self, exchange: Exchange) -> Mapping[str, Any]:
        """Return what schemas need beside the body."""
        call = exchange.call
        return {"hosted": self._hosted, "caller_id": call.caller and call.caller.user_id, "now": call.at}

    async def receive(self, exchange: Exchange, schema: type[Body]) -> ParsedBody:
        """Read a body and validate it with the schema: a `Form`, else JSON. Large bodies are parsed off the event loop.

        Raises UnsupportedMedia, Malformed, TooLarge or TooSlow, or Overloaded if too little memory is free.
        """
        request, context = exchange.request, self.context(exchange)
        if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
            raise UnsupportedMedia("Send the body without Content-Encoding.")
        is_form = issubclass(schema, Form)
        if request.body_exists and request.content_length != 0:
            _require_type(request, schema, is_form=is_form)
        if (request.content_length or 0) > schema.most_bytes:
            raise TooLarge(TOO_LARGE.format(schema.most_bytes // MIB))
        received = bytearray() if exchange.received is None else exchange.received
        try:
            if _has_arrived(request):
                received += request.content.read_nowait()
            else:
                await self._read(request, received, schema.most_bytes)
            parse = partial(parse_form if is_form else parse_body, schema, received, context)
            if exchange.key is not None:
                parse = partial(keys.parse, exchange, received, parse)
            if len(received) <= SMALL:
                return parse()
            parsed: ParsedBody = await self._executors.run(Work.PARSING, parse, exchange.call)
            return parsed
        finally:
            self._free += _counted(len(received))

    async def _read(self, request: BaseRequest, received: bytearray, most: int) -> None:
        async with receiving(request, "body", self._timeout):
            if request.content.at_eof():
                return  # no body: iterating over aiohttp's empty stream would never end
            chunks = arrivals = arrived = 0
            async for piece, ends_chunk in request.content.iter_chunks():
                chunks += ends_chunk
                if chunks > MAX_CHUNKS:
                    raise TooLarge(f"The body is sent in more than {MAX_CHUNKS:,} chunks. Send larger chunks.")
                self._hold(len(received), len(received) + len(piece), most)
                received += piece
                if arrived != request.content.total_bytes:
                    arrived, arrivals = request.content.total_bytes, arrivals + 1
                    if arrivals > PROMPT_ARRIVALS:
                        await _pause_reading(request)

    def _hold(self, before: int, size: int, most: int) -> None:
        """Reserve memory for a body that grows from `before` to `size` bytes. Raises TooLarge or Overloaded."""
        if size > most:
            raise TooLarge(TOO_LARGE.format(most // MIB))
        more = _counted(size) - _counted(before)
        if more > self._free:
            raise Overloaded("Too many large bodies are being received. Try again in a second.")
        self._free -= more


def _counted(size: int) -> int:
    """Return how many bytes of a body of this size count toward the limit MAX_HELD: all but the first 16 KiB."""
    return max(0, size - SMALL)


def _require_type(request: BaseRequest, schema: type[Body], *, is_form: bool) -> None:
    """Raise UnsupportedMedia unless the body is a form, or else JSON, and Malformed if it is not in UTF-8."""
    if schema.any_type:
        return
    kind, given = parameters.parse(request.headers.get(hdrs.CONTENT_TYPE, ""))
    name, wanted = ("the form", FORM_TYPE) if is_form else ("JSON", "application/json")
    if not (kind == FORM_TYPE if is_form else JSON_KIND.fullmatch(kind)):
        raise UnsupportedMedia(f"Send {name}, with Content-Type: {wanted}.")
    if given.get("charset", "utf-8").lower() not in CHARSETS:
        raise Malformed(f"Send {name} in UTF-8.")


def _has_arrived(request: BaseRequest) -> bool:
    """Return whether the whole body is there already, and is small and not sent in chunks."""
    stream, length = request.content, request.content_length
    return length is not None and length <= SMALL and stream.is_eof() and stream.exception() is None


async def _pause_reading(request: BaseRequest) -> None:
    """Stop reading for a moment, because reading a slow body in many small pieces is costly."""
    if request.content.is_eof() or request.transport is None:
        return
    request.transport.pause_reading()
    try:
        await asyncio.sleep(PAUSE_SECONDS)
    finally:
        if request.transport is not None:
            request.transport.resume_reading()


@asynccontextmanager
async def receiving(request: BaseRequest, name: str, seconds: float) -> AsyncIterator[None]:
    """Receive the body, after 100 Continue to a client that waits for it (RFC 9110, section 10.1.1).

    Raises TooSlow if that takes longer than `seconds`, or Malformed. `name`: of what arrives, for the message.
    """
    waits = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= HttpVersion11
    if waits and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise TooSlow(f"The {name} did not arrive in time.") from None
    except (RequestPayloadError, ConnectionError):
        raise Malformed("The body has invalid HTTP framing.") from None
