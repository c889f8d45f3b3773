"""The second rule: a token that tries one resource after another that is private to others, or does not exist."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.clock import SECOND

if TYPE_CHECKING:
    from musicsvc.config import Abuse
    from musicsvc.store.activity.calls import Entry

DENIED = (403, 404)
FIRST_FAILURE = 400
UNANSWERED = (429, *range(499, 600))  # refused unseen, broken off by the client, or failed by us


def denies(entry: Entry) -> bool:
    """Whether the call was denied something of a kind that can be private; an id of the catalog never counts."""
    return entry.private and entry.status in DENIED


class Call(NamedTuple):
    """A call that was looked at; `denied` is the resource that it was refused."""

    at: int
    denied: str | None
    success: bool


@dataclass(slots=True)
class Figures:
    """The calls of the last `probe_seconds`: how many different resources were denied, and how many calls succeeded."""

    resources: int = 0
    calls: int = 0
    successes: int = 0
    since: int = 0


class Probes:
    """The calls of one token, in the order of time."""

    def __init__(self, rules: Abuse) -> None:
        self._most = rules.probes
        self._window = rules.probe_seconds * SECOND
        self._percent = rules.probe_success_percent
        self._calls: deque[Call] = deque()
        self._denied: Counter[str] = Counter()
        self._successes = 0

    def see(self, entry: Entry) -> Figures | None:
        """Take an answer in; the figures where it is a denial that counts."""
        denied = entry.resource if denies(entry) else None
        # Other denials are of a malformed id, of the catalog, of an unknown path, or of the account itself.
        if entry.status in UNANSWERED or (entry.status in DENIED and denied is None):
            return None
        self._forget(entry.at - self._window)
        call = Call(entry.at, denied, entry.status < FIRST_FAILURE)
        self._calls.append(call)
        self._successes += call.success
        if denied is None:
            return None
        self._denied[denied] += 1
        return Figures(len(self._denied), len(self._calls), self._successes, self._calls[0].at)

    def seldom_right(self, figures: Figures) -> bool:
        """Whether so few calls succeed as those of one who tries ids."""
        return figures.successes * 100 < self._percent * figures.calls

    def excessive(self, figures: Figures) -> bool:
        """Whether the figures pass the threshold."""
        return figures.resources >= self._most and self.seldom_right(figures)

    def _forget(self, before: int) -> None:
        while self._calls and self._calls[0].at <= before:
            gone = self._calls.popleft()
            self._successes -= gone.success
            if gone.denied is not None:
                self._denied[gone.denied] -= 1
                if not self._denied[gone.denied]:
                    del self._denied[gone.denied]
