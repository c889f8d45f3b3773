"""Reading a request's body: bounded in size and time, of a kind that is read here."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from aiohttp import HttpVersion11, hdrs
from aiohttp.web import RequestPayloadError

from musicsvc.errors import Malformed, TooLarge, TooSlow, UnsupportedMedia
from musicsvc.server.schemas.reading import parse_json

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest
    from pydantic import BaseModel

MAX_BODY = 1024 * 1024
JSON_KIND = re.compile(r"application/(json|[a-z0-9.-]+\+json)", re.IGNORECASE)
CHARSETS = {"utf-8", "utf8", "us-ascii"}  # where one is named at all


async def read_json(request: BaseRequest, schema: type[BaseModel], timeout: float) -> Any:  # noqa: ASYNC109 - a setting
    """The JSON value that was sent; raises UnsupportedMedia, TooLarge, TooSlow and Malformed, in this order."""
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise UnsupportedMedia("Send the body without Content-Encoding.")
    if request.body_exists and request.content_length != 0:
        _require_json(request)
    raw = await _read(request, timeout)
    if raw:
        return parse_json(raw)
    if any(field.is_required() for field in schema.model_fields.values()):
        raise Malformed("A JSON body is required.")
    return {}


def _require_json(request: BaseRequest) -> None:
    if not JSON_KIND.fullmatch(request.content_type):
        raise UnsupportedMedia("Send JSON, with Content-Type: application/json.")
    if request.charset is not None and request.charset.lower() not in CHARSETS:
        raise Malformed("Send JSON in UTF-8.")


async def _read(request: BaseRequest, timeout: float) -> bytes:  # noqa: ASYNC109
    if (request.content_length or 0) > MAX_BODY:
        raise TooLarge("The body is larger than 1 MiB.")
    chunks = bytearray()
    try:
        async with asyncio.timeout(timeout):
            await _continue(request)
            async for chunk in request.content.iter_any():
                chunks += chunk
                if len(chunks) > MAX_BODY:
                    raise TooLarge("The body is larger than 1 MiB.")
    except TimeoutError:
        raise TooSlow("The body did not arrive in time.") from None
    except (RequestPayloadError, ConnectionError):
        raise Malformed("The body is not framed as HTTP asks for.") from None
    return bytes(chunks)


async def _continue(request: BaseRequest) -> None:
    """Ask for the body where the client waits to be asked (RFC 9110, section 10.1.1)."""
    waits = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= HttpVersion11
    if waits and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
