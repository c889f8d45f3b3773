"""Response bodies with their entity tag and gzip form, computed once and sent in many responses."""

import hashlib
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

JSON_TYPE = "application/json; charset=utf-8"
MIN_COMPRESSED = 1400  # bytes
TEXT = re.compile(r"text/|application/(json|javascript)|image/svg")


@dataclass(slots=True, eq=False)
class Representation:
    """A response body with its entity tag. `packed`: its gzip form, or None until it is needed for the first time."""

    content: bytes
    content_type: str
    tag: str
    compressible: bool
    packed: bytes | None = None


def represent(content: bytes, content_type: str) -> Representation:
    """Compute the entity tag and the gzip form of a body. Takes up to 100 ms."""
    worthwhile = compressible(len(content), content_type)
    packed = b"".join(pack([content])) if worthwhile else None
    return Representation(content, content_type, tag_of([content]), worthwhile, packed)


def compressible(size: int, content_type: str) -> bool:
    """Return whether a body of this size and type is worth compressing with gzip."""
    return size >= MIN_COMPRESSED and TEXT.match(content_type) is not None


def tag_of(pieces: Iterable[bytes]) -> str:
    """Return the entity tag of a body that is given in pieces. The tag has no quotes."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()[:32]


def pack(pieces: list[bytes]) -> list[bytes]:
    """Compress a body with gzip. Removes each piece from the list before the next is compressed, to free its memory."""
    packer = zlib.compressobj(level=5, wbits=31)
    packed = []
    while pieces:
        packed.append(packer.compress(pieces.pop(0)))
    return [*filter(None, packed), packer.flush()]


def compact(pieces: Iterable[bytes]) -> bytes:
    """Join pieces of JSON into a short copy to keep in memory. Pieces made by orjson can take ten times the bytes."""
    return b"".join([*pieces, b""])  # of a single piece, `join` would return the piece itself
