"""A parser of multipart/form-data (RFC 7578), fed with the body piece by piece."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from musicsvc.errors import Malformed

LONGEST_HEAD = 8 * 1024
BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
DISPOSITION = re.compile(r"^content-disposition:[ \t]*form-data[ \t]*;(.*)$", re.IGNORECASE | re.MULTILINE)
PARAMETER = re.compile(r';?[ \t]*(name|filename)="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
NOT_VALID = "The form is not valid multipart/form-data."


class Part(NamedTuple):
    """The head of a part: the name of its field, and the name of its file if it has one."""

    name: str
    filename: str | None


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
            sure = max(0, len(buffer) - len(delimiter) + 1)
            content = bytes(buffer[:sure])
            del buffer[:sure]
            return content or None
        after = place + len(delimiter)
        if len(buffer) < after + 2:
            content = bytes(buffer[:place])
            del buffer[:place]
            return content or None
        sign = bytes(buffer[after : after + 2])
        if sign not in {b"--", b"\r\n"}:
            raise Malformed(NOT_VALID)
        content = bytes(buffer[:place])
        self.ended = sign == b"--"
        self._in_head = True
        del buffer[: after + 2]
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
        line = DISPOSITION.search(head)
        found = {name.lower(): _plain(value) for name, value in PARAMETER.findall(line[1] if line else "")}
        if "name" not in found:
            raise Malformed(NOT_VALID)
        return Part(found["name"], found.get("filename"))


def _plain(text: str) -> str:
    """Replace what browsers and other clients escape in names."""
    return re.sub(r"\\(.)", r"\1", text).replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
