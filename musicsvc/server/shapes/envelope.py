"""Parts that many responses share: `status` and `pagination` around the content, and downloads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from musicsvc.server.shapes.representation import Representation
from musicsvc.store.engine.pagination import Listing

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """The public base URL of the service, with which absolute URLs in responses begin."""

    root: str


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
