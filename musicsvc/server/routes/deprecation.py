"""The notice of endpoints that will end, in the headers of their responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime


@dataclass(frozen=True, slots=True)
class Deprecated:
    """The end of an endpoint, which it names in its responses (RFC 9745, RFC 8594).

    `since` and `ends` are dates such as 2026-12-01, of the notice and of the end; `guide` is the address of a page that
    says what to use instead.
    """

    since: str
    ends: str
    guide: str

    @property
    def headers(self) -> Mapping[str, str]:
        since, ends = (datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (self.since, self.ends))
        return {
            "Deprecation": f"@{since.timestamp():.0f}",
            "Sunset": format_datetime(ends, usegmt=True),
            "Link": f'<{self.guide}>; rel="deprecation"',
        }
