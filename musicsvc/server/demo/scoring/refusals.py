"""The points of clients that heed refusals: they wait as long as told, and stop using a dead token."""

import re
from collections.abc import Hashable
from typing import NamedTuple

from cachetools import LRUCache

from musicsvc.clock import SECOND
from musicsvc.server.demo.journal import Entry
from musicsvc.server.demo.scoring.observed import Observed
from musicsvc.server.demo.scoring.point import Point, came_after

MOST_REFUSALS = MOST_TOKENS = 1000
UNAUTHORIZED = 401
REASON = re.compile(r'error_description="(expired|revoked)"')
REFUSALS = (429, 503)
TOLERANCE = 0.1  # seconds; timers of clients are not exact
SPENT = re.compile(r'"(\w+)";r=0\b')
SHARED = {"token", "address"}  # the limits that concern all requests of a client


class Refusal(NamedTuple):
    entry: Entry
    seconds: int

    def is_over(self, seen: Entry) -> bool:
        """Return whether the time has passed, by the real clock or by that of the demo."""
        seconds = self.seconds - TOLERANCE
        return seen.began >= self.entry.ended + seconds or seen.at >= self.entry.ended_at + seconds * SECOND


class WaitsForRetryAfter(Point):
    """After a 429 or a 503, a client waits the seconds in `Retry-After`, by the real clock or by that of the demo.

    A 429 of the limit of the token or the address concerns all requests of the client, any other one the same endpoint.
    Other requests within 0.1 s were on their way.
    """

    name = "retry-after"
    title = "Waits for Retry-After"
    remedy = "Wait the seconds in Retry-After before the next request."
    occasion = 'Inject a refusal: POST /demo/faults {"fault": "429", "count": 1}.'

    def __init__(self) -> None:
        super().__init__()
        self._refusals: LRUCache[Hashable, Refusal] = self.cache(MOST_REFUSALS)

    def see(self, seen: Observed) -> None:
        entry = seen.entry
        for key in ((seen.client,), (seen.client, entry.method, entry.route)):
            refusal = self._refusals.get(key)
            if refusal is None:
                continue
            if refusal.is_over(entry):
                del self._refusals[key]
                self.passed = True
            elif came_after(seen, refusal.entry):
                del self._refusals[key]
                self.accuse(f"came back before the {refusal.seconds} s of Retry-After", seen, refusal.entry)
        seconds = entry.response_headers.get("Retry-After", "")
        if seen.arrived and entry.status in REFUSALS and seconds.isdecimal():
            self._refusals[_key(seen)] = Refusal(entry, int(seconds))


def _key(seen: Observed) -> Hashable:
    spent = SPENT.findall(seen.entry.response_headers.get("RateLimit", ""))
    if SHARED.intersection(spent):
        return (seen.client,)
    return seen.client, seen.entry.method, seen.entry.route


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
        self._dead: LRUCache[Hashable, tuple[Entry, str]] = self.cache(MOST_TOKENS)

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
