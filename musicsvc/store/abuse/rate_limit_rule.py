"""The rate-limit rule: calls with a token are refused (429) repeatedly, and sent again before Retry-After is over.

Several clients may share a token and pause at different times. So each refused call is assigned to a client whose pause
is over or, up to a maximum number of clients, to a new client. If neither is possible, the refusal is early: a client
did not wait. Calls in flight when the limit is reached are also early, so the counts restart once all clients paused.
"""

import heapq
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from musicsvc.clock import SECOND
from musicsvc.config import Abuse
from musicsvc.store.activity.calls import Entry

REFUSED = 429
CLIENTS = 10  # a token may have one client for every 10 refusals that the rule allows
PATIENCE = 0.9  # the share of a pause that must be over, because timers and rounding differ
EARLY = 5  # a violation takes one early refusal for every 5 refusals that the rule allows


class Refusal(NamedTuple):
    """A call refused with 429 at the time `at`. `early` is True if a client did not wait until its pause was over."""

    at: int
    early: bool


@dataclass(slots=True)
class RefusalFigures:
    """Numbers of calls refused with 429, and of `early` refusals. `since` is the time of the first refused call."""

    refused: int = 0
    early: int = 0
    since: int = 0


class RateLimitRule:
    """Counts one token's refused calls in the last `refusal_seconds`, and applies the rule. Add calls in time order."""

    def __init__(self, rules: Abuse) -> None:
        self._most = rules.refusals
        self._clients = max(1, rules.refusals // CLIENTS)
        self._window = rules.refusal_seconds * SECOND
        self._run: deque[Refusal] = deque()
        self._early = 0
        self._pauses: list[int] = []  # a heap of the ends of the clients' pauses
        self._silent_until = 0

    def add(self, entry: Entry) -> RefusalFigures | None:
        """Add a call to the counts. Return the counts if the call was refused with 429, else None."""
        if entry.status != REFUSED:
            return None
        pause_end = entry.at + int(max(entry.retry_after or 1, 1) * SECOND * PATIENCE)
        if entry.at >= self._silent_until:
            self._reset()
        self._forget(entry.at - self._window)
        early = self._is_early(entry.at, pause_end)
        self._silent_until = max(self._silent_until, pause_end)
        self._run.append(Refusal(entry.at, early))
        self._early += early
        return RefusalFigures(len(self._run), self._early, self._run[0].at)

    def violated(self, figures: RefusalFigures) -> bool:
        return figures.refused >= self._most and figures.early * EARLY >= self._most

    def _reset(self) -> None:
        self._run.clear()
        self._early = 0
        self._pauses.clear()

    def _forget(self, before: int) -> None:
        while self._run and self._run[0].at <= before:
            self._early -= self._run.popleft().early

    def _is_early(self, at: int, pause_end: int) -> bool:
        if self._pauses and self._pauses[0] <= at:
            heapq.heapreplace(self._pauses, pause_end)
            return False
        if len(self._pauses) < self._clients:
            heapq.heappush(self._pauses, pause_end)
            return False
        return True
