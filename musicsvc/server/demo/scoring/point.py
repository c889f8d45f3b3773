"""A point of the report card, and its result."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from cachetools import LRUCache

from musicsvc.server.demo.journal import Entry
from musicsvc.server.demo.scoring.observed import Observed

MOST_SHOWN = 20  # violations of a point that are kept
GRACE_SECONDS = 0.1  # in which a client that sends several requests at once learns of a refusal


class State(Enum):
    PASSED = "passed"
    FAILED = "failed"
    UNTESTED = "not tested"


class Violation(NamedTuple):
    """A fault of a client in words, and the requests that show it, oldest first."""

    text: str
    client: str
    requests: Sequence[Entry]


class Result(NamedTuple):
    """The state of a point. `violations`: the first ones; `number`: how many there are."""

    point: "type[Point]"
    state: State
    number: int
    violations: Sequence[Violation]


class Point(ABC):
    """Evaluates requests in the order in which they end. The docstring of each point states its rule.

    `name`: for programs; `title`: what a good client does; `remedy`: for a client that does not; `occasion`: how to
    test it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    remedy: ClassVar[str]
    occasion: ClassVar[str]

    def __init__(self) -> None:
        self._violations: list[Violation] = []
        self._count = 0
        self._caches: list[LRUCache[Any, Any]] = []
        self.passed = False

    @abstractmethod
    def see(self, seen: Observed) -> None:
        """Evaluate the next request."""

    def cache(self, most: int) -> LRUCache[Any, Any]:
        """Return a cache for `most` things that clients know or still have to do."""
        self._caches.append(made := LRUCache[Any, Any](most))
        return made

    def forget(self) -> None:
        """Forget what clients know and still have to do, because data and time went back."""
        for cache in self._caches:
            cache.clear()

    def unsettled(self) -> Iterable[Violation]:
        """Return what is wrong as of now, and may still be mended."""
        return ()

    def accuse(self, text: str, seen: Observed, *before: Entry) -> None:
        """Note a violation by a request. `before`: earlier requests that show it."""
        self._count += 1
        if len(self._violations) < MOST_SHOWN:
            self._violations.append(Violation(text, seen.client, [*before, seen.entry]))

    def result(self) -> Result:
        unsettled = list(self.unsettled())
        count = self._count + len(unsettled)
        state = State.FAILED if count else State.PASSED if self.passed else State.UNTESTED
        return Result(type(self), state, count, [*islice((*self._violations, *unsettled), MOST_SHOWN)])


def came_after(seen: Observed, refused: Entry) -> bool:
    """Return whether the client knew of the refused request when it sent this one.

    It did if it repeats that request; another request may have been on its way.
    """
    again = (seen.entry.method, seen.entry.target) == (refused.method, refused.target)
    return seen.entry.began > refused.ended + (0.0 if again else GRACE_SECONDS)
