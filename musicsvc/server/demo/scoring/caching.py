"""The point of clients that use the ETags that they get."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from cachetools import LRUCache

from musicsvc.server.demo.journal import Entry
from musicsvc.server.demo.scoring.observed import Observed
from musicsvc.server.demo.scoring.point import Point

MOST_TAGS = 10_000
OK, NOT_MODIFIED = 200, 304
MOST_WASTED = 2


@dataclass(slots=True)
class Known:
    """The ETag that a client has got for a URL, and the requests since then that returned the same again."""

    tag: str
    first: Entry
    wasted: list[Entry] = field(default_factory=list)


class UsesETags(Point):
    """A client that asks again for what it has sends the ETag in `If-None-Match`.

    It may get the same response, unchanged, with the same ETag, once more, as after a restart, but not twice. Requests
    that are on their way at the same time count once.
    """

    name = "etags"
    title = "Uses ETags"
    remedy = "Send the ETag in If-None-Match, with its quotes, and use what you have after a 304."
    occasion = "Let the client read the same resource at least twice."

    def __init__(self) -> None:
        super().__init__()
        self._known: LRUCache[Hashable, Known] = self.cache(MOST_TAGS)

    def see(self, seen: Observed) -> None:
        entry = seen.entry
        tag = entry.response_headers.get("ETag")
        if entry.method != "GET" or tag is None or not seen.arrived:
            return
        if entry.status == NOT_MODIFIED:
            self.passed = True
        if entry.status != OK:
            return
        key = seen.client, entry.target
        known = self._known.get(key)
        if known is None or known.tag != tag:
            self.passed |= known is not None and known.tag in entry.headers.get("If-None-Match", "")
            self._known[key] = Known(tag, entry)
            return
        if entry.began < [known.first, *known.wasted][-1].ended:
            return  # both were on their way
        known.wasted.append(entry)
        if len(known.wasted) == MOST_WASTED:
            self.accuse("got the same response again and again, without its ETag", seen, known.first, known.wasted[0])
            known.wasted.clear()
