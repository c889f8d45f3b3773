"""The point of clients that read a list to its end."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cachetools import LRUCache

from musicsvc.server.demo.journal import Entry
from musicsvc.server.demo.scoring.observed import Observed
from musicsvc.server.demo.scoring.point import Point, Violation

MOST_LISTS = 10_000


@dataclass(slots=True)
class Walk:
    """The pages of a list that a client has received, and the newest request for one."""

    newest: Entry
    last: int = 1
    pages: set[int] = field(default_factory=set)

    @property
    def begun(self) -> bool:
        return max(self.pages, default=1) > 1

    def missing(self) -> list[int]:
        """Return the pages that were not received. The first one may be known from before."""
        return [page for page in range(2, self.last + 1) if page not in self.pages]


class PagesToTheEnd(Point):
    """A client that has asked for a second page of a list asks for all pages up to `last_page`, in any order.

    Who reads the first page only is not evaluated: it may want no more. A list is unfinished if the client has gone on
    with other requests. A page that was refused or lost must be asked for again.
    """

    name = "paging"
    title = "Pages to the end"
    remedy = "Ask for pages until current_page is last_page, and again for a page that failed."
    occasion = "Let the client read a list of several pages, such as GET /api/v1/tracks."

    def __init__(self) -> None:
        super().__init__()
        self._walks: LRUCache[tuple[str, str, frozenset[tuple[str, str]]], Walk] = self.cache(MOST_LISTS)
        self._newest: LRUCache[str, int] = LRUCache(MOST_LISTS)

    def see(self, seen: Observed) -> None:
        entry = seen.entry
        self._newest[seen.client] = entry.number
        if entry.method != "GET" or (page := seen.page) is None:
            return
        rest = frozenset(pair for pair in seen.query if pair[0] != "page")
        key = (seen.client, seen.path, rest)
        walk = self._walks.get(key)
        if walk is None or (page.current_page == 1 and walk.begun and not walk.missing()):
            self._walks[key] = walk = Walk(entry)  # who has read it all and looks for news, begins again
        walk.newest, walk.last = entry, page.last_page
        if page.current_page <= page.last_page:
            walk.pages.add(page.current_page)
        self.passed |= walk.begun and not walk.missing()

    def unsettled(self) -> Iterator[Violation]:
        for (client, *_), walk in self._walks.items():
            if walk.begun and (missing := walk.missing()) and self._newest.get(client) != walk.newest.number:
                some = ", ".join(map(str, missing[:3])) + (", …" if len(missing) > 3 else "")  # noqa: PLR2004 - shown
                yield Violation(f"did not read the pages {some} of {walk.last}", client, [walk.newest])
