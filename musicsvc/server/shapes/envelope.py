"""Parts of responses: `status` and `pagination` around the content, downloads, and bodies with tag and gzip form."""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, unquote_plus

from musicsvc.clock import isoformat
from musicsvc.store.engine.pagination import Listing

JSON = dict[str, Any]
JSON_TYPE = "application/json; charset=utf-8"
OCTETS = "application/octet-stream"
MIN_COMPRESSED = 1400  # bytes
TEXT = re.compile(r"text/|application/(json|javascript)|image/svg")
LONGEST_QUERY = 1500  # bytes of a query in a Link header, so that any proxy takes a head with two


@dataclass(frozen=True, slots=True)
class Site:
    """The public base URL of the service, with which absolute URLs in responses begin."""

    root: str


@dataclass(slots=True, eq=False)
class Representation:
    """A response body with its entity tag. `packed`: its gzip form, or None until it is needed for the first time.

    `link`: the Link header of a page of a list, or nothing.
    """

    content: bytes
    content_type: str
    tag: str
    compressible: bool
    packed: bytes | None = None
    link: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """A response body of bytes, with its headers."""

    content: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    kept: Representation | None = None  # the cached content with its ETag and gzip form

    @classmethod
    def from_representation(cls, kept: Representation, headers: Mapping[str, str]) -> Self:
        """Build a download that sends a cached representation."""
        return cls(kept.content, kept.content_type, headers, kept)


@dataclass(frozen=True, slots=True)
class Members:
    """The `count` items of a JSON array, already encoded. `pieces` also contain the commas between the items."""

    pieces: list[bytes]
    count: int

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class Encoded:
    """JSON as bytes, in pieces. `link`: as that of its `Representation`."""

    pieces: list[bytes]
    link: str = ""

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


def as_file(name: str) -> dict[str, str]:
    """Return the header by which browsers save a response as a file of this name."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def picked(row: object, *names: str) -> JSON:
    """Return attributes of a row as JSON, with the times, whose names are `at` or end in `_at`, in ISO 8601."""
    found = {name: getattr(row, name) for name in names}
    return {name: format_time(value) if name.rpartition("_")[2] == "at" else value for name, value in found.items()}


def format_time(instant: int | None) -> str | None:
    """Format a time in ISO 8601 for JSON. Returns None for None."""
    return None if instant is None else isoformat(instant)


def ok(**parts: Any) -> JSON:
    return {"status": "success", **parts}


def success(data: Any) -> JSON:
    return {"success": True, "data": data}


def paginator(listing: Listing[Any], data: list[JSON] | Members) -> JSON:
    """Return a page of a list as JSON (docs/api.md, Pages). `data`: the rows of the page as JSON."""
    page, some = listing.page, bool(data)
    return {
        "current_page": page.number,
        "from": page.offset + 1 if some else None,
        "to": page.offset + len(data) if some else None,
        "per_page": page.size,
        "last_page": max(1, -(-listing.total // page.size)),
        "total": listing.total,
        "data": data,
    }


def paged(listing: Listing[Any], shape: Callable[..., JSON], *context: Any) -> JSON:
    """Return the response with a page of a list. `shape` takes each row, and `context`, and returns its JSON."""
    return ok(pagination=paginator(listing, [shape(row, *context) for row in listing.rows]))


def page_links(result: JSON, query: str) -> str:
    """Return the Link header of a response: the next and the previous page if it is a page of a list, or nothing.

    `query`: that of the request, undecoded. The references have nothing else, so they hold below any base path. A
    `;` is encoded, because clients such as httpx end the reference there.
    """
    page = next((part for part in result.values() if isinstance(part, dict) and "last_page" in part), None)
    kept = quote(query, safe="!$&'()*+,-./:=?@_~%", errors="surrogateescape")
    if page is None or len(kept) > LONGEST_QUERY:
        return ""
    number, last = page["current_page"], page["last_page"]
    others = [f"{part}&" for part in kept.split("&") if part and unquote_plus(part.partition("=")[0]) != "page"]
    wanted = {"next": number + 1 if number < last else 0, "prev": min(number - 1, last)}
    return ", ".join(f'<?{"".join(others)}page={to}>; rel="{name}"' for name, to in wanted.items() if to)


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
