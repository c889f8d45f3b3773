"""A parser of multipart/form-data (RFC 7578), fed with the body piece by piece."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from musicsvc.errors import Malformed
from musicsvc.server.request import parameters

LONGEST_HEAD = 8 * 1024
BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
NOT_VALID = "The form is not valid multipart/form-data."


class Part(NamedTuple):
    """The head of a part: the name of its field, and the name of its file if it has one.

    `size`: the bytes of the head and of the boundary before it.
    """

    name: str
    filename: str | None
    size: int


class FormData:
    """The state of the parser. `ended`: the last part is complete."""

    def __init__(self, boundary: str) -> None:
        if not BOUNDARY.fullmatch(boundary):
            raise Malformed(NOT_VALID)
        self._delimiter = b"\r\n--" + boundary.encode()
        self._buffer = bytearray(b"\r\n")  # the first boundary has none before it
        self._in_head = False
        self.ended = False

    def feed(self, data: bytes) -> Iterator[Part | bytes]:
        """Yield the heads of parts as they begin, and pieces of the content of the latest. Raises Malformed."""
        self._buffer += data
        while not self.ended:
            found = self._head() if self._in_head else self._content()
            if found is None:
                return
            if found:
                yield found

    def _content(self) -> bytes | None:
        """Return content up to the next boundary, or as much as is certain. None if more data is needed."""
        buffer, delimiter = self._buffer, self._delimiter
        place = buffer.find(delimiter)
        if place < 0:
            place = max(0, len(buffer) - len(delimiter) + 1)  # a boundary may begin here
        content, end = bytes(buffer[:place]), place + len(delimiter) + 2
        if len(buffer) < end:
            del buffer[:place]
            return content or None
        sign = bytes(buffer[end - 2 : end])
        if sign not in {b"--", b"\r\n"}:
            raise Malformed(NOT_VALID)
        self.ended = sign == b"--"
        self._in_head = True
        del buffer[:end]
        return content

    def _head(self) -> Part | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end > LONGEST_HEAD or (end < 0 and len(self._buffer) > LONGEST_HEAD):
            raise Malformed(NOT_VALID)
        if end < 0:
            return None
        try:
            head = self._buffer[:end].decode()
        except UnicodeDecodeError:
            raise Malformed(NOT_VALID) from None
        del self._buffer[: end + 4]
        self._in_head = False
        found = _disposition(head)
        if "name" not in found:
            raise Malformed(NOT_VALID)
        filename = _plain(found["filename"]) if "filename" in found else None
        return Part(_plain(found["name"]), filename, len(self._delimiter) + end + 6)  # three ends of lines


def _disposition(head: str) -> dict[str, str]:
    """Return the parameters of the first Content-Disposition of a head, none if it is not that of a form."""
    for line in head.split("\n"):
        name, _, value = line.partition(":")
        if name.lower() == "content-disposition":
            kind, found = parameters.parse(value)
            return found if kind == "form-data" else {}
    return {}


def _plain(text: str) -> str:
    """Replace what browsers escape in names."""
    return text.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
