"""Builds responses from handlers' results: JSON, ETag and 304, compression, common headers; sends long ones in pieces.

The ETag and 304 follow RFC 9110, section 13, the choice of gzip section 12.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from aiohttp import hdrs
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.web import BaseRequest, Response, StreamResponse
from multidict import CIMultiDict, CIMultiDictProxy

from musicsvc.server.peer import VARY
from musicsvc.server.responses.answer_cache import LARGE
from musicsvc.server.responses.handling import IGNORED
from musicsvc.server.responses.large import encode
from musicsvc.server.shapes.envelope import (
    JSON_TYPE,
    OCTETS,
    Download,
    Encoded,
    Representation,
    compressible,
    pack,
    tag_of,
)
from musicsvc.server.shapes.spooled import Spooled
from musicsvc.store.accounts import tokens

SERVER = "musicsvc"
REQUEST_ID_HEADER = "X-Request-Id"
# As plain strings, which are formatted in a fraction of the time of those of aiohttp.
CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG = "Cache-Control", "Content-Encoding", "Content-Type", "Etag"
COMPRESSED_IN_THREAD = 64 * 1024  # bytes; compressing more would block the event loop too long
PIECE = 64 * 1024  # bytes; longer bodies are sent in pieces, as fast as the client reads them
REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
OK, NOT_MODIFIED = 200, 304
REASONS = {OK: "OK", NOT_MODIFIED: "Not Modified"}


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


class Negotiation(NamedTuple):
    """The encodings that a client accepts, and the entity tags of the responses that it has."""

    gzip: bool
    known_tags: frozenset[str]  # the values of If-None-Match, without `W/`

    @classmethod
    def of_headers(cls, headers: CIMultiDictProxy[str]) -> Self:
        lines = headers.getall(hdrs.IF_NONE_MATCH, ())
        tags = frozenset(part.strip().removeprefix("W/") for line in lines for part in line.split(","))
        return cls(_accepts_gzip(headers.getall(hdrs.ACCEPT_ENCODING, ())), tags)

    def packs(self, answer: Representation) -> bool:
        """Return whether the client gets the response in its gzip form."""
        return self.gzip and answer.compressible

    def entity_tag(self, answer: Representation) -> str:
        """Return the ETag header of the response. It is different for each encoding."""
        return f'"{answer.tag}-gzip"' if self.packs(answer) else f'"{answer.tag}"'

    def knows(self, answer: Representation) -> bool:
        """Return whether the client already has the response."""
        return "*" in self.known_tags or self.entity_tag(answer) in self.known_tags


class Prepared(NamedTuple):
    """A whole response. `body`: its parts, or a file. Its length and date are added when it is sent."""

    status: int
    headers: dict[str, str]
    body: list[bytes] | Spooled

    @property
    def size(self) -> int:
        body = self.body
        return len(body.begin) + body.length if isinstance(body, Spooled) else sum(map(len, body))

    @property
    def head(self) -> str:
        """The head of a 200 or 304 as text, without its date."""
        length = "" if self.status == NOT_MODIFIED else f"Content-Length: {self.size}\r\n"
        lines = "".join([f"{name}: {value}\r\n" for name, value in self.headers.items()])
        return f"HTTP/1.1 {self.status} {REASONS[self.status]}\r\n{lines}{length}"


def serialize(head: Iterable[str], body: bytes) -> bytes:
    """Return the bytes of a response, as aiohttp would send it. `head`: the parts of its head, without its date."""
    return "".join((*head, "Date: ", rfc822_formatted_time(), "\r\n\r\n")).encode() + body


async def build_response(
    request: BaseRequest, reply: Reply, headers: dict[str, str], request_id: str
) -> StreamResponse:
    """Return the response. A short response is not sent yet. A long one has already been sent, in pieces.

    `headers`: further headers, which come first.
    """
    return await send(request, await prepare(request, reply, headers, request_id), reply.cookies)


async def prepare(request: BaseRequest, reply: Reply, headers: dict[str, str], request_id: str) -> Prepared:
    """Return the response to send. `headers`: further headers, which come first."""
    headers = common_headers(headers | reply.headers, request_id)
    result, caching = reply.result, reply.caching
    if isinstance(result, Spooled):
        headers |= {**result.headers, CACHE_CONTROL: "no-store"}
        headers[CONTENT_TYPE] = _media_type(request, headers, result.content_type)
        return Prepared(reply.status, headers, result)
    if isinstance(result, Download):
        headers |= result.headers
        caching = caching and headers.get(CACHE_CONTROL)  # the handler decides whether a file may be cached
    answer, body = _content(result)
    if caching is None or reply.status != OK:
        headers[CONTENT_TYPE] = _media_type(request, headers, answer.content_type)
        headers.setdefault(CACHE_CONTROL, "no-store")
        if answer.packed is not None and Negotiation.of_headers(request.headers).gzip:
            headers[CONTENT_ENCODING] = "gzip"
            body = [answer.packed]
        return Prepared(reply.status, headers, body)
    negotiation = Negotiation.of_headers(request.headers)
    await _complete(answer, body, negotiation)
    return conditional(answer, body, negotiation, headers, caching)


def _media_type(request: BaseRequest, headers: Mapping[str, str], content_type: str) -> str:
    """Return the media type of the content; that of a file is `application/octet-stream` if only that is accepted."""
    as_bytes = hdrs.CONTENT_DISPOSITION in headers and request.headers.get(hdrs.ACCEPT) == OCTETS
    return OCTETS if as_bytes else content_type


def common_headers(first: Mapping[str, str], request_id: str) -> dict[str, str]:
    """Return the headers of all responses, after the headers `first`."""
    return {**first, "Server": SERVER, REQUEST_ID_HEADER: request_id, "X-Content-Type-Options": "nosniff"}


def conditional(
    answer: Representation, body: list[bytes], negotiation: Negotiation, headers: Mapping[str, str], caching: str
) -> Prepared:
    """Return a 200 with a strong ETag, or a 304 if the client already has the response.

    `body`: the parts of the content. `answer` must have a gzip form if the client gets that.
    """
    validity: dict[str, str] = {ETAG: negotiation.entity_tag(answer), CACHE_CONTROL: caching}
    if "Vary" not in headers:
        validity["Vary"] = VARY
    if answer.link:
        validity["Link"] = ", ".join(filter(None, (headers.get("Link"), answer.link)))
    if negotiation.knows(answer):
        return Prepared(NOT_MODIFIED, {name: headers[name] for name in headers if name != IGNORED} | validity, [])
    headers = {**headers, CONTENT_TYPE: answer.content_type, **validity}
    if negotiation.packs(answer) and answer.packed is not None:
        return Prepared(OK, headers | {CONTENT_ENCODING: "gzip"}, [answer.packed])
    return Prepared(OK, headers, body)


def is_safe_request_id(given: str) -> bool:
    """Return whether a client's request id is safe to log: it has plain characters only, and no API token."""
    return REQUEST_ID.fullmatch(given) is not None and tokens.PREFIX not in given


def new_request_id() -> str:
    return os.urandom(12).hex()


def _content(result: Any) -> tuple[Representation, list[bytes]]:
    """Return the content of a response, without an entity tag if that is not known yet, and its parts."""
    if isinstance(result, Representation):
        return result, [result.content]
    if isinstance(result, Download):
        if result.kept is not None:
            return result.kept, [result.content]
        content_type, body, link = result.content_type, [result.content], ""
    else:
        made = result if isinstance(result, Encoded) else encode(result)
        content_type, body, link = JSON_TYPE, made.pieces, made.link
    return Representation(b"", content_type, "", compressible(sum(map(len, body)), content_type), link=link), body


async def _complete(answer: Representation, body: list[bytes], negotiation: Negotiation) -> None:
    """Compute the entity tag of the content, and its gzip form if the client gets that."""
    size = sum(map(len, body))
    if not answer.tag:
        answer.tag = tag_of(body) if size < LARGE else await asyncio.to_thread(tag_of, body)
    if negotiation.packs(answer) and answer.packed is None and not negotiation.knows(answer):
        packed = pack(body) if size < COMPRESSED_IN_THREAD else await asyncio.to_thread(pack, body)
        answer.packed = b"".join(packed)


def _with_cookies(headers: Mapping[str, str], cookies: Sequence[str]) -> CIMultiDict[str]:
    found = CIMultiDict(headers)
    found.extend((hdrs.SET_COOKIE, cookie) for cookie in cookies)
    return found


async def send(request: BaseRequest, response: Prepared, cookies: Sequence[str]) -> StreamResponse:
    """Return the response. A short response is not sent yet. A long one has already been sent, in pieces."""
    if isinstance(response.body, Spooled):
        return await _send_file(request, response.body, stream(response, cookies))
    headers, size, body = _with_cookies(response.headers, cookies), response.size, response.body
    if response.status == NOT_MODIFIED:
        return Response(status=NOT_MODIFIED, headers=headers)
    if request.method == hdrs.METH_HEAD:
        headers[hdrs.CONTENT_LENGTH] = str(size)  # aiohttp would omit that of an empty body
    elif size > PIECE:
        # Without joining the parts of the body.
        pieces = (part[at : at + PIECE] for part in body for at in range(0, len(part), PIECE))
        return await send_pieces(request, stream(response, cookies), pieces)
    return Response(status=response.status, body=b"".join(body), headers=headers)


async def _send_file(request: BaseRequest, spooled: Spooled, response: StreamResponse) -> StreamResponse:
    """Send the file and close it. The file is read off the event loop."""
    with spooled.file, suppress(ConnectionError):
        await response.prepare(request)
        whole = request.method != hdrs.METH_HEAD
        if whole and spooled.begin:
            await response.write(spooled.begin)
        while whole and (piece := await asyncio.to_thread(spooled.file.read, PIECE)):
            await response.write(piece)
        await response.write_eof()
    return response


async def send_pieces(
    request: BaseRequest, response: StreamResponse, pieces: Iterable[bytes], pause: float = 0.0
) -> StreamResponse:
    """Send a response in these pieces, each after a pause in seconds."""
    with suppress(ConnectionError):
        await response.prepare(request)
        for piece in pieces:
            if pause:
                await asyncio.sleep(pause)
            await response.write(piece)
        await response.write_eof()
    return response


def stream(response: Prepared, cookies: Sequence[str]) -> StreamResponse:
    """Return a response whose body is still to be written."""
    made = StreamResponse(status=response.status, headers=_with_cookies(response.headers, cookies))
    made.content_length = response.size
    return made


def _accepts_gzip(given: Sequence[str]) -> bool:
    """Return whether `given`, the values of Accept-Encoding, allow gzip by name or by `*`."""
    weights: dict[str, float] = {}
    for part in ",".join(given).lower().split(","):
        coding, _, parameter = part.partition(";")
        weights[coding.strip()] = _weight(parameter)
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
