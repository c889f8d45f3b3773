"""Reading a request's body: bounded in size and time, of a kind that is read here."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import HttpVersion11, hdrs
from aiohttp.web import RequestPayloadError

from musicsvc.errors import Malformed, Overloaded, TooLarge, TooSlow, UnsupportedMedia
from musicsvc.server.request.executors import Work
from musicsvc.server.schemas.parsed_body import parse_body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.web import BaseRequest

    from musicsvc.server.request.executors import Executors
    from musicsvc.server.schemas.fields import Body
    from musicsvc.server.schemas.parsed_body import ParsedBody

MAX_BODY = 1024 * 1024
MAX_CHUNKS = 2048
PROMPT_ARRIVALS = 64
PILING_SECONDS = 0.05
MAX_HELD = 32 * 1024 * 1024
SMALL = 16 * 1024  # up to this size a body is parsed on the event loop, and does not count towards MAX_HELD
JSON_KIND = re.compile(r"application/(json|[a-z0-9.-]+\+json)", re.IGNORECASE)
CHARSETS = {"utf-8", "utf8", "us-ascii"}  # where one is named at all


class Bodies:
    """Reads bodies; those on their way hold 32 MiB together at most, and 16 KiB each beside that."""

    def __init__(self, timeout: float, executors: Executors) -> None:
        """`timeout`: seconds for a whole body."""
        self._timeout = timeout
        self._executors = executors
        self._room = MAX_HELD

    async def receive(
        self, request: BaseRequest, schema: type[Body], context: Mapping[str, Any], *, token_holder: bool
    ) -> ParsedBody:
        """Read, parse and check the JSON body of a request; a large one is parsed off the event loop.

        Raises UnsupportedMedia, TooLarge, TooSlow, Overloaded and Malformed.
        """
        if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
            raise UnsupportedMedia("Send the body without Content-Encoding.")
        if request.body_exists and request.content_length != 0:
            _require_json(request)
        if (request.content_length or 0) > MAX_BODY:
            raise TooLarge("The body is larger than 1 MiB.")
        received = bytearray()
        try:
            await self._read(request, received)
            parse = partial(parse_body, schema, received, context)
            if len(received) <= SMALL:
                return parse()
            parsed: ParsedBody = await self._executors.run(Work.PARSING, parse, token_holder=token_holder)
            return parsed
        finally:
            self._room += _counted(len(received))

    async def _read(self, request: BaseRequest, received: bytearray) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await _continue(request)
                if request.content.at_eof():
                    return  # no body at all; the empty stream of aiohttp yields chunks without end
                chunks = arrivals = arrived = 0
                async for piece, ends_chunk in request.content.iter_chunks():
                    chunks += ends_chunk
                    if chunks > MAX_CHUNKS:
                        raise TooLarge(f"The body is sent in more than {MAX_CHUNKS:,} chunks. Send larger ones.")
                    self._hold(len(received), len(received) + len(piece))
                    received += piece
                    if arrived != request.content.total_bytes:
                        arrived, arrivals = request.content.total_bytes, arrivals + 1
                        if arrivals > PROMPT_ARRIVALS:
                            await _let_pile_up(request)
        except TimeoutError:
            raise TooSlow("The body did not arrive in time.") from None
        except (RequestPayloadError, ConnectionError):
            raise Malformed("The body is not framed as HTTP asks for.") from None

    def _hold(self, before: int, size: int) -> None:
        """Take the memory that a body needs to grow to this size."""
        if size > MAX_BODY:
            raise TooLarge("The body is larger than 1 MiB.")
        more = _counted(size) - _counted(before)
        if more > self._room:
            raise Overloaded("Too many large bodies are on their way. Try again in a second.")
        self._room -= more


def _counted(size: int) -> int:
    """Return how much of a body counts towards the memory for all of them."""
    return max(0, size - SMALL)


def _require_json(request: BaseRequest) -> None:
    if not JSON_KIND.fullmatch(request.content_type):
        raise UnsupportedMedia("Send JSON, with Content-Type: application/json.")
    if request.charset is not None and request.charset.lower() not in CHARSETS:
        raise Malformed("Send JSON in UTF-8.")


async def _let_pile_up(request: BaseRequest) -> None:
    """Let the system collect what arrives for a moment: taking each byte of a dripping body by itself is costly."""
    if request.content.is_eof() or request.transport is None:
        return
    request.transport.pause_reading()
    try:
        await asyncio.sleep(PILING_SECONDS)
    finally:
        if request.transport is not None:
            request.transport.resume_reading()


async def _continue(request: BaseRequest) -> None:
    """Ask for the body where the client waits to be asked (RFC 9110, section 10.1.1)."""
    waits = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= HttpVersion11
    if waits and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
