"""Responses that no endpoint produces: to invalid HTTP, late requests and rejected connections."""

from http import HTTPStatus

import orjson
from aiohttp import HttpVersion10, HttpVersion11, hdrs
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import _ErrInfo

from musicsvc.server.peer import HSTS
from musicsvc.server.responses.responses import SERVER, new_request_id
from musicsvc.server.shapes.envelope import JSON_TYPE

MAX_HEAD = 32 * 1024
INTERNAL = 500
TOO_MANY_HEADERS = "Too many headers received"  # the message of aiohttp
VERSIONS = (HttpVersion10, HttpVersion11)
TEXTS = {
    400: "The request is not valid HTTP.",
    408: "The request did not arrive in time.",
    431: f"The head of the request has more than {MAX_HEAD // 1024} KiB or 128 headers, or a line of more than 8 KiB.",
    INTERNAL: "An internal error occurred.",
}
NOT_ENCRYPTED = "This port expects HTTPS: begin the address with https:// in place of http://."
BUSY = "Too many connections are open. Try again in a second."


def fault_of(message: RawRequestMessage | _ErrInfo, size: int) -> int:
    """Return 400 for an unsupported HTTP version, 431 for a head that is too large, else 0. `size`: bytes received."""
    if isinstance(message, _ErrInfo):
        return 0  # aiohttp has refused it
    if message.version not in VERSIONS:
        return 400
    if size <= MAX_HEAD:
        return 0
    head = len(message.path) + sum(len(name) + len(value) for name, value in message.raw_headers)
    return 431 if head > MAX_HEAD else 0


def encoded(status: int, body: bytes, headers: dict[str, str]) -> bytes:
    """Return the bytes of a response, the last one of its connection."""
    headers |= {hdrs.CONTENT_LENGTH: str(len(body)), hdrs.CONNECTION: "close"}
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *lines, "", ""]).encode("ascii") + body


def refusal(text: str, *, hsts: bool) -> tuple[bytes, dict[str, str]]:
    """Return the JSON body and headers of an error response, with Strict-Transport-Security if `hsts` is set."""
    headers: dict[str, str] = {
        hdrs.SERVER: SERVER,
        hdrs.CONTENT_TYPE: JSON_TYPE,
        hdrs.CACHE_CONTROL: "no-store",
        "X-Request-Id": new_request_id(),
        **(HSTS if hsts else {}),
    }
    return orjson.dumps({"status": "error", "message": text, "errors": {}}), headers
