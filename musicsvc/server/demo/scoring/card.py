"""The report card of a demo: all points, and what they say about the requests until now."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from musicsvc.server.demo.journal import Contents, Entry
from musicsvc.server.demo.scoring.caching import UsesETags
from musicsvc.server.demo.scoring.edge import SurvivesEdgeValues
from musicsvc.server.demo.scoring.fields import SendsKnownFields
from musicsvc.server.demo.scoring.observed import Observed
from musicsvc.server.demo.scoring.paging import PagesToTheEnd
from musicsvc.server.demo.scoring.plays import LosesNoPlay
from musicsvc.server.demo.scoring.point import Point, Result, State
from musicsvc.server.demo.scoring.refusals import StopsWithDeadTokens, WaitsForRetryAfter
from musicsvc.server.demo.scoring.retries import RetriesSafely


class Report(NamedTuple):
    """The results of all points, and the number of requests that they have evaluated."""

    results: Sequence[Result]
    requests: int

    @property
    def passed(self) -> int:
        return sum(result.state is State.PASSED for result in self.results)

    @property
    def score(self) -> int:
        """The share of the passed points of all points, in percent."""
        return 100 * self.passed // len(self.results)


class Card:
    """Evaluates requests of the journal. It observes them on the event loop, handlers read the report on threads."""

    def __init__(self, document: Mapping[str, Any], world: str) -> None:
        """`document`: the OpenAPI document of the service. `world`: the name of the demo's data."""
        self._begin: Callable[[], Sequence[Point]] = lambda: (
            WaitsForRetryAfter(),
            PagesToTheEnd(),
            RetriesSafely(document),
            UsesETags(),
            SendsKnownFields(document),
            StopsWithDeadTokens(),
            LosesNoPlay(),
            SurvivesEdgeValues(world),
        )
        self._lock = threading.Lock()
        self.restarted()

    def ended(self, entry: Entry, contents: Contents) -> None:
        """Evaluate a request that has ended."""
        seen = Observed(entry, contents)
        with self._lock:
            self._requests += 1
            for point in self._points:
                point.see(seen)

    def restarted(self) -> None:
        """Begin a new card."""
        with self._lock:
            self._points = self._begin()
            self._requests = 0

    def forget(self) -> None:
        """Forget what clients know and still have to do, because data and time went back."""
        with self._lock:
            for point in self._points:
                point.forget()

    def report(self) -> Report:
        with self._lock:
            return Report([point.result() for point in self._points], self._requests)
