"""What every answer has around its resource: status, page, and files that are sent as they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from musicsvc.server.shapes.representation import Representation
    from musicsvc.store.engine.pagination import Listing

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """The service as its clients see it: `root` is the address that absolute URLs begin with."""

    root: str


@dataclass(frozen=True, slots=True)
class Download:
    """Bytes that are sent as they are; `kept`: with their tag and gzip form, where those are computed already."""

    content: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    kept: Representation | None = None

    @classmethod
    def of(cls, kept: Representation, headers: Mapping[str, str]) -> Self:
        """The answer that sends a representation."""
        return cls(kept.content, kept.content_type, headers, kept)


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a JSON array, encoded, in pieces with the commas between them."""

    pieces: list[bytes]
    count: int

    def __len__(self) -> int:
        return self.count


def ok(**parts: Any) -> JSON:
    """A successful answer with the documented key."""
    return {"status": "success", **parts}


def success(data: Any) -> JSON:
    """A successful answer of the insights endpoints."""
    return {"success": True, "data": data}


def paginator(listing: Listing[Any], data: list[JSON] | Members) -> JSON:
    """The seven-key paginator (docs/api.md, Pages); `data` are the shaped rows of the listing."""
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
