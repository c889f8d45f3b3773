"""The point of clients that stop using a token that is not valid any more."""

import re
from collections.abc import Hashable

from cachetools import LRUCache

from musicsvc.server.demo.journal import Entry
from musicsvc.server.demo.scoring.observed import Observed
from musicsvc.server.demo.scoring.point import Point, came_after

MOST_TOKENS = 1000
UNAUTHORIZED = 401
REASON = re.compile(r'error_description="(expired|revoked)"')


class StopsWithDeadTokens(Point):
    """After a 401 that says that its token is expired or revoked, a client does not send this token again.

    Other requests within 0.1 s were on their way.
    """

    name = "dead-token"
    title = "Stops using a dead token"
    remedy = "After a 401 with error_description expired or revoked, ask for a new token, and stop sending the old one."
    occasion = 'Let its token expire: POST /demo/clock {"advance": "91d"}, or inject the fault 401-revoked.'

    def __init__(self) -> None:
        super().__init__()
        self._dead: LRUCache[Hashable, tuple[Entry, str]] = LRUCache(MOST_TOKENS)

    def see(self, seen: Observed) -> None:
        if seen.entry.token is None:
            return
        value = seen.client, seen.entry.token.last_four  # a regenerated token has the same id
        refused = self._dead.get(value)
        if refused is not None and came_after(seen, refused[0]):
            self.accuse(f"sent a token again after a 401 that said it is {refused[1]}", seen, refused[0])
        reason = REASON.search(seen.entry.response_headers.get("WWW-Authenticate", ""))
        if seen.entry.status == UNAUTHORIZED and reason is not None and seen.arrived:
            self.passed = True
            self._dead.setdefault(value, (seen.entry, reason[1]))

    def forget(self) -> None:
        self._dead.clear()
