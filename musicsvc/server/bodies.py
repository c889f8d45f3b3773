"""Reading a request's body: bounded in size and time, of a kind that is read here."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from aiohttp import HttpVersion11, hdrs
from aiohttp.web import RequestPayloadError

from musicsvc.errors import Malformed, Overloaded, TooLarge, TooSlow, UnsupportedMedia
from musicsvc.server.schemas.reading import parse_json

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest
    from pydantic import BaseModel

MAX_BODY = 1024 * 1024
MAX_HELD = 32 * 1024 * 1024
ALWAYS_HELD = 16 * 1024
JSON_KIND = re.compile(r"application/(json|[a-z0-9.-]+\+json)", re.IGNORECASE)
CHARSETS = {"utf-8", "utf8", "us-ascii"}  # where one is named at all


class Bodies:
    """Reads bodies; those on their way hold 32 MiB together at most, and 16 KiB each beside that."""

    def __init__(self, timeout: float) -> None:
        """`timeout`: seconds for a whole body."""
        self._timeout = timeout
        self._room = MAX_HELD

    async def read_json(self, request: BaseRequest, schema: type[BaseModel]) -> Any:
        """The JSON value that was sent.

        Raises UnsupportedMedia, TooLarge, TooSlow, Overloaded and Malformed.
        """
        if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
            raise UnsupportedMedia("Send the body without Content-Encoding.")
        if request.body_exists and request.content_length != 0:
            _require_json(request)
        raw = await self._read(request)
        if raw:
            return parse_json(raw)
        if any(field.is_required() for field in schema.model_fields.values()):
            raise Malformed("A JSON body is required.")
        return {}

    async def _read(self, request: BaseRequest) -> bytes:
        if (request.content_length or 0) > MAX_BODY:
            raise TooLarge("The body is larger than 1 MiB.")
        chunks = bytearray()
        held = 0
        try:
            async with asyncio.timeout(self._timeout):
                await _continue(request)
                async for chunk in request.content.iter_any():
                    chunks += chunk
                    held += self._hold(len(chunks), held)
        except TimeoutError:
            raise TooSlow("The body did not arrive in time.") from None
        except (RequestPayloadError, ConnectionError):
            raise Malformed("The body is not framed as HTTP asks for.") from None
        finally:
            self._room += held
        return bytes(chunks)

    def _hold(self, size: int, held: int) -> int:
        """Take room for a body that has grown to this size; how much more than before."""
        if size > MAX_BODY:
            raise TooLarge("The body is larger than 1 MiB.")
        more = max(0, size - ALWAYS_HELD - held)
        if more > self._room:
            raise Overloaded("Too many large bodies are on their way. Try again in a second.")
        self._room -= more
        return more


def _require_json(request: BaseRequest) -> None:
    if not JSON_KIND.fullmatch(request.content_type):
        raise UnsupportedMedia("Send JSON, with Content-Type: application/json.")
    if request.charset is not None and request.charset.lower() not in CHARSETS:
        raise Malformed("Send JSON in UTF-8.")


async def _continue(request: BaseRequest) -> None:
    """Ask for the body where the client waits to be asked (RFC 9110, section 10.1.1)."""
    waits = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= HttpVersion11
    if waits and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
