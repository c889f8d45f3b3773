"""The first rule: a token that runs into 429 again and again without pausing as Retry-After tells.

A token may stand for several clients at once, each of which pauses by itself. So the refusals are dealt out to clients:
one whose pause is over has heeded it and came back; where there is none it is another client that heard nothing yet, as
long as they are not too many; else it was in flight when the limit was met, or came too early. When all pauses are over
at once, everything is forgiven.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from musicsvc.clock import SECOND

if TYPE_CHECKING:
    from musicsvc.config import Abuse
    from musicsvc.store.activity import Entry

REFUSED = 429
CLIENTS = 10  # one in so many refusals may be another client of the same token
IN_FLIGHT = 10 * SECOND  # requests that were under way, or queued, when the limit was met
PATIENCE = 0.9  # of a pause; timers and roundings differ
EARLY = 5  # one in so many must have come too early
FLOOD = 5  # times the refusals allowed: too many even for requests in flight

Kind = Literal["heeded", "in_flight", "early"]


class Refusal(NamedTuple):
    """A refusal, and how the client behaved that met it; `heeded`: it is its first, or follows its pause."""

    at: int
    kind: Kind


@dataclass(slots=True)
class Figures:
    """Refusals of the last `refusal_seconds` without a pause: how many, how many of them early, and since when.

    `flood`: those that no pause went before, whatever pauses there were between.
    """

    refused: int = 0
    early: int = 0
    flood: int = 0
    since: int = 0


class Refusals:
    """The refusals of one token, in the order of time."""

    def __init__(self, rules: Abuse) -> None:
        self._most = rules.refusals
        self._clients = max(1, rules.refusals // CLIENTS)
        self._window = rules.refusal_seconds * SECOND
        self._run: deque[Refusal] = deque()
        self._early = 0
        self._flood: deque[int] = deque()
        self._began = 0
        self._pauses: list[int] = []  # a heap: when the pause of each client is over
        self._silent_until = 0

    def see(self, entry: Entry) -> Figures | None:
        """Take an answer in; the figures where it is a refusal."""
        if entry.status != REFUSED:
            return None
        told = entry.at + int(max(entry.retry_after or 1, 1) * SECOND * PATIENCE)
        if entry.at >= self._silent_until:
            self._begin(entry.at)
        self._forget(entry.at - self._window)
        kind = self._kind(entry.at, told)
        self._silent_until = max(self._silent_until, told)
        self._run.append(Refusal(entry.at, kind))
        self._early += kind == "early"
        if kind != "heeded":
            self._flood.append(entry.at)
        return Figures(len(self._run), self._early, len(self._flood), self._run[0].at)

    def excessive(self, figures: Figures) -> bool:
        """Whether the figures pass the threshold."""
        unheeded = figures.refused >= self._most and figures.early * EARLY >= self._most
        return unheeded or figures.flood >= self._most * FLOOD

    def _begin(self, at: int) -> None:
        """Everybody paused as told: what was before is forgiven."""
        self._run.clear()
        self._early, self._began = 0, at
        self._pauses.clear()

    def _forget(self, before: int) -> None:
        while self._run and self._run[0].at <= before:
            self._early -= self._run.popleft().kind == "early"
        while self._flood and self._flood[0] <= before:
            self._flood.popleft()

    def _kind(self, at: int, told: int) -> Kind:
        if self._pauses and self._pauses[0] <= at:
            heapq.heapreplace(self._pauses, told)
            return "heeded"
        if len(self._pauses) < self._clients:
            heapq.heappush(self._pauses, told)
            return "heeded"
        return "in_flight" if at < self._began + IN_FLIGHT else "early"
