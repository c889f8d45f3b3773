"""Builds responses from handlers' results: JSON, ETag and 304, compression, common headers."""

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response, StreamResponse
from multidict import CIMultiDict

from musicsvc.server.responses.fragments import LARGE
from musicsvc.server.responses.large import Encoded, encode
from musicsvc.server.responses.negotiation import Negotiation
from musicsvc.server.responses.streaming import PIECE, send_bytes, send_file
from musicsvc.server.shapes.envelope import Download
from musicsvc.server.shapes.representation import JSON_TYPE, Representation, compressible, pack, tag_of
from musicsvc.server.shapes.spooled import Spooled
from musicsvc.store.accounts import tokens

SERVER = "musicsvc"
REQUEST_ID_HEADER = "X-Request-Id"
COMPRESSED_IN_THREAD = 64 * 1024  # bytes; compressing more would block the event loop too long
VARY = "Authorization, Accept-Encoding"
REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")


@dataclass(frozen=True, slots=True)
class Reply:
    """The content of a response. `caching`: its Cache-Control header, or None if the response must not be cached.

    `cookies`: the values of its Set-Cookie headers.
    """

    result: Any
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    caching: str | None = None
    cookies: Sequence[str] = ()


async def build_response(request: BaseRequest, reply: Reply, request_id: str) -> StreamResponse:
    """Return the response. A short response is not sent yet. A long one has already been sent, in pieces."""
    headers: CIMultiDict[str] = CIMultiDict(reply.headers)
    headers.extend(((hdrs.SERVER, SERVER), (REQUEST_ID_HEADER, request_id), ("X-Content-Type-Options", "nosniff")))
    headers.extend((hdrs.SET_COOKIE, cookie) for cookie in reply.cookies)
    caching, kept = reply.caching, None
    if isinstance(reply.result, Spooled):
        headers.update(reply.result.headers)
        headers[hdrs.CONTENT_TYPE] = reply.result.content_type
        headers[hdrs.CACHE_CONTROL] = "no-store"
        return await send_file(request, reply.result, reply.status, headers)
    if isinstance(reply.result, Representation):
        headers[hdrs.CONTENT_TYPE] = reply.result.content_type
        body, kept = [reply.result.content], reply.result
    elif isinstance(reply.result, Download):
        headers.update(reply.result.headers)
        headers[hdrs.CONTENT_TYPE] = reply.result.content_type
        body, kept = [reply.result.content], reply.result.kept
        caching = caching and headers.get(hdrs.CACHE_CONTROL)  # the handler decides whether a file may be cached
    else:
        headers[hdrs.CONTENT_TYPE] = JSON_TYPE
        encoded = reply.result if isinstance(reply.result, Encoded) else encode(reply.result)
        body = encoded.pieces
    if caching is None or reply.status != 200:  # noqa: PLR2004 - OK
        headers.setdefault(hdrs.CACHE_CONTROL, "no-store")
        if kept is not None and kept.packed is not None and Negotiation.of_headers(request.headers).gzip:
            headers[hdrs.CONTENT_ENCODING] = "gzip"
            body = [kept.packed]
        return await _send(request, reply.status, body, headers)
    return await _cacheable(request, body, headers, caching, kept)


def is_safe_request_id(given: str) -> bool:
    """Return whether a client's request id is safe to log: it has plain characters only, and no API token."""
    return REQUEST_ID.fullmatch(given) is not None and tokens.PREFIX not in given


def new_request_id() -> str:
    return os.urandom(12).hex()


async def _cacheable(
    request: BaseRequest, body: list[bytes], headers: CIMultiDict[str], caching: str, kept: Representation | None
) -> StreamResponse:
    """Return a 200 with a strong ETag, or a 304 if the client already has this ETag (RFC 9110, section 13)."""
    size = sum(map(len, body))
    compressible_body = kept.compressible if kept is not None else compressible(size, headers[hdrs.CONTENT_TYPE])
    negotiation = Negotiation.of_headers(request.headers)
    tag = negotiation.entity_tag(await _tag(body, size, kept), compressible=compressible_body)
    headers[hdrs.ETAG] = tag
    headers[hdrs.CACHE_CONTROL] = caching
    headers[hdrs.VARY] = VARY
    if negotiation.is_known(tag):
        del headers[hdrs.CONTENT_TYPE]
        return Response(status=304, headers=headers)
    if compressible_body and negotiation.gzip:
        headers[hdrs.CONTENT_ENCODING] = "gzip"
        body = await _packed(body, size, kept)
    return await _send(request, 200, body, headers)


async def _send(request: BaseRequest, status: int, body: list[bytes], headers: CIMultiDict[str]) -> StreamResponse:
    size = sum(map(len, body))
    if request.method == hdrs.METH_HEAD:
        headers[hdrs.CONTENT_LENGTH] = str(size)  # aiohttp would omit that of an empty body
    elif size > PIECE:
        return await send_bytes(request, body, status, headers)
    return Response(status=status, body=b"".join(body), headers=headers)


async def _tag(body: list[bytes], size: int, kept: Representation | None) -> str:
    if kept is not None:
        return kept.tag
    return tag_of(body) if size < LARGE else await asyncio.to_thread(tag_of, body)


async def _packed(body: list[bytes], size: int, kept: Representation | None) -> list[bytes]:
    if kept is not None and kept.packed is not None:
        return [kept.packed]
    packed = pack(body) if size < COMPRESSED_IN_THREAD else await asyncio.to_thread(pack, body)
    if kept is not None:
        kept.packed = b"".join(packed)
    return packed
