"""The first rule: a token that runs into 429 again and again without pausing as Retry-After tells.

A token may stand for several clients at once, each of which pauses by itself. So the refusals are dealt out to clients:
one whose pause is over has heeded it and came back; where there is none it is another client that heard nothing yet, as
long as they are not too many; else it came too early, or was in flight when the limit was met, which is forgiven with
the pause that follows it. When all pauses are over at once, everything is forgiven.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.clock import SECOND

if TYPE_CHECKING:
    from musicsvc.config import Abuse
    from musicsvc.store.activity.calls import Entry

REFUSED = 429
CLIENTS = 10  # one in so many refusals may be another client of the same token
PATIENCE = 0.9  # of a pause; timers and roundings differ
EARLY = 5  # one in so many must have come too early


class Refusal(NamedTuple):
    """A refusal; `early`: it is no client's first one, and follows nobody's pause."""

    at: int
    early: bool


@dataclass(slots=True)
class Figures:
    """Refusals of the last `refusal_seconds` without a pause: how many, how many of them early, and since when."""

    refused: int = 0
    early: int = 0
    since: int = 0


class Refusals:
    """The refusals of one token, in the order of time."""

    def __init__(self, rules: Abuse) -> None:
        self._most = rules.refusals
        self._clients = max(1, rules.refusals // CLIENTS)
        self._window = rules.refusal_seconds * SECOND
        self._run: deque[Refusal] = deque()
        self._early = 0
        self._pauses: list[int] = []  # a heap: when the pause of each client is over
        self._silent_until = 0

    def see(self, entry: Entry) -> Figures | None:
        """Take an answer in; the figures where it is a refusal."""
        if entry.status != REFUSED:
            return None
        told = entry.at + int(max(entry.retry_after or 1, 1) * SECOND * PATIENCE)
        if entry.at >= self._silent_until:
            self._forgive()
        self._forget(entry.at - self._window)
        early = self._is_early(entry.at, told)
        self._silent_until = max(self._silent_until, told)
        self._run.append(Refusal(entry.at, early))
        self._early += early
        return Figures(len(self._run), self._early, self._run[0].at)

    def excessive(self, figures: Figures) -> bool:
        """Whether the figures pass the threshold."""
        return figures.refused >= self._most and figures.early * EARLY >= self._most

    def _forgive(self) -> None:
        """Everybody paused as told: what was before counts no more."""
        self._run.clear()
        self._early = 0
        self._pauses.clear()

    def _forget(self, before: int) -> None:
        while self._run and self._run[0].at <= before:
            self._early -= self._run.popleft().early

    def _is_early(self, at: int, told: int) -> bool:
        if self._pauses and self._pauses[0] <= at:
            heapq.heapreplace(self._pauses, told)
            return False
        if len(self._pauses) < self._clients:
            heapq.heappush(self._pauses, told)
            return False
        return True
