"""The bytes of a response that is in memory, as `build_response` and aiohttp would send it."""

from collections.abc import Mapping

from aiohttp import hdrs
from aiohttp.helpers import rfc822_formatted_time

from musicsvc.server.responses.negotiation import Negotiation
from musicsvc.server.responses.responses import REQUEST_ID_HEADER, SERVER, VARY
from musicsvc.server.shapes.representation import Representation

OK, NOT_MODIFIED = 200, 304


def serialize(
    answer: Representation, negotiation: Negotiation, headers: Mapping[str, str], caching: str, request_id: str
) -> tuple[int, int, bytes]:
    """Return status, body size and bytes of the response. `answer` needs a gzip form if `negotiation` chooses gzip."""
    tag = negotiation.entity_tag(answer.tag, compressible=answer.compressible)
    first = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    common = f"{first}Server: {SERVER}\r\n{REQUEST_ID_HEADER}: {request_id}\r\nX-Content-Type-Options: nosniff\r\n"
    caching = f"{hdrs.ETAG}: {tag}\r\nCache-Control: {caching}\r\nVary: {VARY}\r\n"
    date = f"Date: {rfc822_formatted_time()}\r\n\r\n"
    if negotiation.is_known(tag):
        return NOT_MODIFIED, 0, f"HTTP/1.1 304 Not Modified\r\n{common}{caching}{date}".encode()
    content, encoding = answer.content, ""
    if negotiation.gzip and answer.packed is not None:
        content, encoding = answer.packed, "Content-Encoding: gzip\r\n"
    kind, length = f"Content-Type: {answer.content_type}\r\n", f"Content-Length: {len(content)}\r\n"
    head = f"HTTP/1.1 200 OK\r\n{common}{kind}{caching}{encoding}{length}{date}".encode()
    return OK, len(content), head + content
