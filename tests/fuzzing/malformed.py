"""Malformed HTTP: requests cut, spliced, with invalid or ambiguous framing."""

from collections.abc import Callable
from random import Random

from tests.fuzzing.requests import RequestGenerator

PIECES = (
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b"\0",
        b":",
        b" ",
        b"\t",
        b"\x0b",
        b"\x7f",
        b"\xff",
        b"\x1b[31m",
        b"%",
        b"?",
        b"#",
    ),
    *(b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"http/1.1", b"GET ", b"POST ", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    *(
        b"Content-Length: 5\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"Content-Length:\r\n",
    ),
    *(
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
    ),
    *(
        b"Transfer-Encoding : chunked\r\n",
        b"Connection: close\r\n",
        b"Connection: Content-Length\r\n",
        b"Upgrade: websocket\r\n",
    ),
    *(
        b"Connection: Upgrade\r\n",
        b"Sec-WebSocket-Key: x\r\n",
        b"Expect: 100-continue\r\n",
        b"Host: localhost\r\n",
        b"Host: b, c\r\n",
    ),
    *(
        b" folded\r\n",
        b"0\r\n\r\n",
        b"5\r\nhello\r\n",
        b"ffffffffffffffff\r\n",
        b'5;ext="\r\n"\r\nhello\r\n',
        b"{}",
        b"[" * 50,
    ),
    *(
        b"X-Forwarded-For: 192.0.2.1\r\n",
        b"X-Forwarded-Proto: https\r\n",
        b'Forwarded: for=x;proto="\r\n',
        b"A: " + b"a" * 9000 + b"\r\n",
    ),
)
# Framed in two ways, or in one that other software reads differently. The next bytes must not become a request.
AMBIGUOUS = (
    *(
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5, 6",
        b"Content-Length: +5",
        b"Content-Length: 0x5",
    ),
    *(b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: chunked\r\nContent-Length: 5"),
    *(
        b"Content-Length: 5 5",
        b"Content-Length: 5\x0b",
        b"Content-Length : 5",
        b"Content-Length: \xb25",
        b"Content-Length: 5_0",
    ),
    *(
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: identity, chunked, gzip",
        b"Transfer-Encoding: xchunked",
    ),
    *(
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding: \x0bchunked",
        b"Transfer-Encoding\t: chunked",
        b"X: a\nTransfer-Encoding: chunked",
    ),
    *(
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Transfer_Encoding: chunked\r\nContent-Length : 5",
        b"X: a\rContent-Length: 5",
    ),
)
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


class MalformedGenerator:
    """Generates bytes, the same ones for the same random generator."""

    def __init__(self, chance: Random, requests: RequestGenerator) -> None:
        self._chance = chance
        self._requests = requests
        self._ways: tuple[Callable[[], bytes], ...] = (
            *(self._pieces, self._cut, self._flipped, self._inserted, self._inserted, self._spliced, self._chunked),
            *(self._in_advance, self._in_advance, self._old),
        )

    def make(self) -> bytes:
        """Return the next bytes."""
        return self._chance.choice(self._ways)()

    def ambiguous(self) -> bytes:
        """Return a request with ambiguous framing, which must be refused, and a second request after it."""
        framing = self._chance.choice(AMBIGUOUS)
        before, after = self._chance.choice(((b"", b"\r\nX: y"), (b"X: y\r\n", b"")))
        head = b"POST /api/v1/artists HTTP/1.1\r\nHost: localhost\r\n" + before + framing + after + b"\r\n\r\n"
        return head + self._chance.choice((b"0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"hello", b"")) + SMUGGLED

    def _sound(self) -> bytes:
        return self._requests.make().raw

    def _pieces(self) -> bytes:
        return b"".join(self._chance.choices(PIECES, k=self._chance.randrange(1, 24)))

    def _cut(self) -> bytes:
        raw = self._sound()
        return raw[: self._chance.randrange(len(raw))]

    def _flipped(self) -> bytes:
        raw = bytearray(self._sound())
        for _ in range(self._chance.choice((1, 1, 3, 20))):
            raw[self._chance.randrange(min(len(raw), 400))] = self._chance.randrange(256)
        return bytes(raw)

    def _inserted(self) -> bytes:
        """Insert pieces, mostly between the lines of the head."""
        raw = self._sound()
        for _ in range(self._chance.choice((1, 1, 2, 4))):
            lines = [at + 2 for at in range(len(raw)) if raw.startswith(b"\r\n", at)]
            at = self._chance.choice(lines) if self._chance.random() < 0.7 else self._chance.randrange(len(raw))
            raw = raw[:at] + self._chance.choice(PIECES) + raw[at:]
        return raw

    def _spliced(self) -> bytes:
        first, second = self._sound(), self._sound()
        return first[: self._chance.randrange(len(first))] + second[self._chance.randrange(len(second)) :]

    def _chunked(self) -> bytes:
        """Return a chunked body, valid or not."""
        chance = self._chance
        sent = self._requests.make()
        chunks = []
        body = sent.body or b"{}"
        while body:
            size = chance.randrange(1, len(body) + 1)
            chunk, body = body[:size], body[size:]
            told = len(chunk) + chance.choice((0,) * 30 + (1, -1, 1 << 40))
            extension = chance.choice((b"",) * 9 + (b";a=b", b" ;a", b";" + b"x" * 9000, b"\n", b"g"))
            chunks.append(
                f"{told:x}".encode() + extension + b"\r\n" + chunk + chance.choice((b"\r\n",) * 20 + (b"", b"\n"))
            )
        end = chance.choice(
            (b"0\r\n\r\n",) * 6
            + (b"0\r\nTrailer: x\r\n\r\n", b"0\r\n", b"", b"00\r\n\r\n", b"0\r\n" + b"T: x\r\n" * 500 + b"\r\n")
        )
        head = f"{sent.method} {sent.target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        lines = "".join(f"{line}\r\n" for line in sent.headers if not line.startswith("Host"))
        return (head + lines + "\r\n").encode("utf-8", "surrogateescape") + b"".join(chunks) + end

    def _in_advance(self) -> bytes:
        """Return several pipelined requests."""
        raws = [self._sound() for _ in range(self._chance.choice((2, 3, 9, 40)))]
        return self._chance.choice((b"", b"", b"\r\n", b"\r\n" * 20, b"x")).join(raws)

    def _old(self) -> bytes:
        return self._sound().replace(
            b"HTTP/1.1", self._chance.choice((b"HTTP/1.0", b"", b"HTTP/2.0", b"HTTP/1.2", b"HTTP/1.1 ")), 1
        )
