"""From a handler's result to a response: JSON, ETag and 304, compression, the headers that every answer has."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import hdrs
from aiohttp.web import Response
from multidict import CIMultiDict

from musicsvc.server.shapes.envelope import Download

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.web import BaseRequest

SERVER = "musicsvc"
WORTH_COMPRESSING = 1400
JSON_TYPE = "application/json; charset=utf-8"
VARY = "Authorization, Accept-Encoding"


@dataclass(frozen=True, slots=True)
class Reply:
    """What is to be answered; `caching` is the Cache-Control of what may be kept and asked for again."""

    result: Any
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    caching: str | None = None


def answer(request: BaseRequest, reply: Reply, request_id: str) -> Response:
    """The response to send."""
    headers: CIMultiDict[str] = CIMultiDict(reply.headers)
    headers[hdrs.SERVER] = SERVER
    headers["X-Request-Id"] = request_id
    headers["X-Content-Type-Options"] = "nosniff"
    if isinstance(reply.result, Download):
        headers.update(reply.result.headers)
        headers[hdrs.CONTENT_TYPE] = reply.result.content_type
        body = reply.result.content
    else:
        headers[hdrs.CONTENT_TYPE] = JSON_TYPE
        body = orjson.dumps(reply.result)
    if reply.caching is None or reply.status != 200:  # noqa: PLR2004 - OK
        headers.setdefault(hdrs.CACHE_CONTROL, "no-store")
        return Response(status=reply.status, body=body, headers=headers)
    return _cacheable(request, body, headers, reply.caching)


def _cacheable(request: BaseRequest, body: bytes, headers: CIMultiDict[str], caching: str) -> Response:
    """A 200 with a strong ETag, one per encoding, or the 304 that it allows (RFC 9110, section 13)."""
    compress = len(body) >= WORTH_COMPRESSING and _takes_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, ""))
    tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}{"-gzip" if compress else ""}"'
    headers[hdrs.ETAG] = tag
    headers[hdrs.CACHE_CONTROL] = caching
    headers[hdrs.VARY] = VARY
    if _matches(request.headers.get(hdrs.IF_NONE_MATCH), tag):
        del headers[hdrs.CONTENT_TYPE]
        return Response(status=304, headers=headers)
    if compress:
        headers[hdrs.CONTENT_ENCODING] = "gzip"
        packer = zlib.compressobj(level=5, wbits=31)
        body = packer.compress(body) + packer.flush()
    return Response(status=200, body=body, headers=headers)


def _matches(header: str | None, tag: str) -> bool:
    if header is None:
        return False
    return header.strip() == "*" or tag in {part.strip().removeprefix("W/") for part in header.split(",")}


def _takes_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() in {"gzip", "*"}:
            return weight.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False
