"""Checks of responses: valid HTTP, our own bodies, and in accordance with the OpenAPI document."""

import json
import re
import zlib

from multidict import CIMultiDict

from tests.fuzzing.pages import check_outside_document, check_page, is_page
from tests.fuzzing.requests import FuzzRequest
from tests.support.response_checks import conforms
from tests.support.serving import Answer

STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9]) [A-Za-z '\-]+\Z")
HEADER = re.compile(rb"([A-Za-z0-9-]+): ([\t\x20-\x7e]*)\Z")
JSON = "application/json; charset=utf-8"
WITHOUT_BODY = {100, 204, 304}
BELOW = ("The request is not valid HTTP.", "HTTPS is required.", "This host name is not served.")  # on every path
GENERAL, INSIGHTS = ["status", "message", "errors"], ["success", "message", "error"]
LISTENS = ["code", "error"]
TOOLS = ["jsonrpc", "id", "error"]


def answers(raw: bytes, *, whole: bool = True) -> list[Answer]:
    """Parse the answers in the bytes; fail on invalid ones. `whole=False`: the last one may be cut off."""
    found = []
    while raw:
        head, end, rest = raw.partition(b"\r\n\r\n")
        if not end and not whole:
            break
        assert end, f"half an answer: {raw!r}"
        answer, raw = _answer(head, rest, whole=whole)
        if answer.status != 100:
            found.append(answer)
    return found


def _answer(head: bytes, rest: bytes, *, whole: bool) -> tuple[Answer, bytes]:
    first, *lines = head.split(b"\r\n")
    status = STATUS.match(first)
    assert status, f"no status: {first!r}"
    headers: CIMultiDict[str] = CIMultiDict()
    for line in lines:
        header = HEADER.match(line)
        assert header, f"no header: {line!r}"
        headers.add(header[1].decode(), header[2].decode())
    code = int(status[1])
    if code in WITHOUT_BODY:
        return Answer(code, headers, b""), rest
    assert len(headers.getall("Content-Length")) == 1, head
    length = int(headers["Content-Length"])
    if not rest or rest.startswith(b"HTTP/1."):  # of a HEAD
        return Answer(code, headers, b""), rest
    assert len(rest) >= length or not whole, f"a body of {len(rest)} instead of {length}: {head!r}"
    return Answer(code, headers, rest[:length]), rest[length:]


def check_answer(answer: Answer) -> None:
    """Assert that the answer is no internal error, reveals nothing of the server, and is our JSON or page."""
    assert 200 <= answer.status < 500, (answer.status, answer.body)
    assert answer.headers["Server"] == "musicsvc"
    assert re.fullmatch(r"[A-Za-z0-9._~-]{1,128}", answer.headers["X-Request-Id"])
    assert b"Traceback" not in answer.body
    if is_page(answer):
        check_page(unpacked(answer))
        return
    assert answer.status in {200, 201, 202, 204, 304} or answer.status >= 400, answer.status  # only pages redirect
    if answer.status == 304 or not answer.body:
        return
    if answer.status >= 400:
        assert answer.headers["Content-Type"] == JSON
    if answer.headers["Content-Type"] != JSON:
        return
    body = json.loads(unpacked(answer).body.decode("utf-8"), parse_constant=_refuse)
    if answer.status >= 400:
        keys = list(body)
        if keys == LISTENS:
            assert body["code"] == answer.status
            assert body["error"]
            return
        if keys == TOOLS:
            assert isinstance(body["error"]["code"], int)
            assert body["error"]["message"]
            return
        assert keys in (GENERAL, INSIGHTS, [*INSIGHTS, "errors"]) or body == {"message": "Unauthenticated."}, body
        faults = body.get("errors", {})
        assert answer.status == 422 or not faults
        assert all(isinstance(text, str) and text for text in (body["message"], *faults.values()))


def check_against_document(answer: Answer, sent: FuzzRequest) -> None:
    """Assert that the OpenAPI document, or for pages their table, allows this answer to the request."""
    check_answer(answer)
    answer = unpacked(answer)
    in_json = answer.headers.get("Content-Type") == JSON
    below = answer.status >= 400 and in_json and answer.body and answer.json.get("message") in BELOW
    silent = answer.status in {400, 403} and sent.method == "HEAD" and in_json  # possibly one of these
    if below or silent or check_outside_document(answer, sent):
        return
    if sent.documented:
        conforms(answer, sent.method, sent.target)


def unpacked(answer: Answer) -> Answer:
    """Return the answer with its body decompressed."""
    if answer.headers.get("Content-Encoding") != "gzip" or not answer.body:
        return answer
    return Answer(answer.status, answer.headers, zlib.decompress(answer.body, wbits=31))


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
