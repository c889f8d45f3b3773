"""The probing rule: a token requests many different resources that are private to others or do not exist."""

from collections import Counter, deque
from dataclasses import dataclass
from typing import NamedTuple

from musicsvc.clock import SECOND
from musicsvc.config import Abuse
from musicsvc.store.activity.calls import Entry

DENIED = (403, 404)
FIRST_FAILURE = 400
MESSAGES = "/mcp"  # the route of assistants' messages, each call of a tool in which is logged as a call of its own
UNANSWERED = (429, *range(499, 600))  # rate-limited, aborted by the client, or failed by the service


def denies(entry: Entry) -> bool:
    """Return True if the call was refused with 403 or 404 and its resource is of a type that can be private."""
    return entry.private and entry.status in DENIED


class Call(NamedTuple):
    """A call that the rule evaluates. If access was denied, `denied` is the resource, such as `playlists/7`."""

    at: int
    denied: str | None
    success: bool


@dataclass(slots=True)
class ProbeFigures:
    """Numbers of distinct denied resources, of calls and of successful calls. `since` is the time of the first call."""

    resources: int = 0
    calls: int = 0
    successes: int = 0
    since: int = 0


class ProbingRule:
    """Finds out whether one token's calls of the last `probe_seconds` are probing. Add the calls in order of time."""

    def __init__(self, rules: Abuse) -> None:
        self._most = rules.probes
        self._window = rules.probe_seconds * SECOND
        self._percent = rules.probe_success_percent
        self._calls: deque[Call] = deque()
        self._denied: Counter[str] = Counter()
        self._successes = 0

    def add(self, entry: Entry) -> ProbeFigures | None:
        """Add a call to the counts. Return the new counts if the call was denied access to a resource, else None."""
        denied = entry.resource if denies(entry) else None
        # Other denials are ignored: they concern a malformed id, the catalog, an unknown path or the account itself.
        if entry.status in UNANSWERED or entry.route == MESSAGES or (entry.status in DENIED and denied is None):
            return None
        self._forget(entry.at - self._window)
        call = Call(entry.at, denied, entry.status < FIRST_FAILURE)
        self._calls.append(call)
        self._successes += call.success
        if denied is None:
            return None
        self._denied[denied] += 1
        return ProbeFigures(len(self._denied), len(self._calls), self._successes, self._calls[0].at)

    def mostly_fails(self, figures: ProbeFigures) -> bool:
        """Return True if the percentage of successful calls is below the minimum that the rule demands."""
        return figures.successes * 100 < self._percent * figures.calls

    def violated(self, figures: ProbeFigures) -> bool:
        return figures.resources >= self._most and self.mostly_fails(figures)

    def _forget(self, before: int) -> None:
        while self._calls and self._calls[0].at <= before:
            gone = self._calls.popleft()
            self._successes -= gone.success
            if gone.denied is not None:
                self._denied[gone.denied] -= 1
                if not self._denied[gone.denied]:
                    del self._denied[gone.denied]
