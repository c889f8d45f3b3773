"""When a token is revoked by itself: the rules, as pure functions over what the log of calls holds of one token."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Literal, NamedTuple

from musicsvc.clock import SECOND
from musicsvc.store.abuse.probing_rule import FIRST_FAILURE, Probes
from musicsvc.store.abuse.probing_rule import Figures as ProbeFigures
from musicsvc.store.abuse.rate_limit_rule import Figures as RefusalFigures
from musicsvc.store.abuse.rate_limit_rule import Refusals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from musicsvc.config import Abuse
    from musicsvc.store.activity.calls import Entry

MOSTLY = 2  # where one success in so many is a page of one list, and there are
PAGES = 20  # so many, then it is a list as a whole that is being taken
CATALOG = {"albums", "artists", "tracks", "genres"}  # lists end in one of these

Rule = Literal["excessive", "scraping", "probing"]


class Violation(NamedTuple):
    """That a token has passed a threshold: which, in which calls, and in plain words why."""

    rule: Rule
    since: int
    at: int
    reason: str


class Evaluation:
    """One token before the rules; it is told of its calls in the order of time."""

    def __init__(self, rules: Abuse) -> None:
        self.refused = RefusalFigures()  # where it came nearest to the threshold
        self.probed = ProbeFigures()
        self._refusals = Refusals(rules)
        self._probes = Probes(rules)
        self._pages = _Pages(rules.refusal_seconds * SECOND)

    def see(self, entry: Entry) -> Violation | None:
        """Take a call in; the violation where it passes a threshold."""
        if not entry.judged:
            return None
        self._pages.see(entry)
        if (refused := self._refusals.see(entry)) is not None:
            self.refused = max(self.refused, refused, key=lambda figures: (figures.refused, figures.early))
            if self._refusals.excessive(refused):
                return self._excessive(refused, entry.at)
        if (probed := self._probes.see(entry)) is not None:
            self.probed = max(self.probed, probed, key=self._nearness)
            if self._probes.excessive(probed):
                return _probing(probed, entry.at)
        return None

    def _nearness(self, figures: ProbeFigures) -> tuple[bool, int]:
        return self._probes.seldom_right(figures), figures.resources

    def _excessive(self, figures: RefusalFigures, at: int) -> Violation:
        route = self._pages.walked(at)
        rule: Rule = "excessive" if route is None else "scraping"
        paging = "" if route is None else f", while paging through {route}"
        told = f"{figures.refused} requests refused with 429 within {_seconds(figures.since, at)}"
        told += ", without a pause as told by Retry-After"
        return Violation(rule, figures.since, at, f"abuse: {told}{paging}")


class _Pages:
    """Which lists a token reads, and how much of what it gets they are."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._got: deque[tuple[int, str | None]] = deque()

    def see(self, entry: Entry) -> None:
        if entry.status < FIRST_FAILURE:
            route = entry.route or ""
            listed = entry.method == "GET" and route.rpartition("/")[2] in CATALOG
            self._got.append((entry.at, route if listed else None))
        while self._got and self._got[0][0] <= entry.at - self._window:
            self._got.popleft()

    def walked(self, at: int) -> str | None:
        """The list that most of what it got are pages of, None where there is none."""
        lists = Counter(route for moment, route in self._got if route is not None and moment > at - self._window)
        for route, pages in lists.most_common(1):
            if pages >= PAGES and pages * MOSTLY >= len(self._got):
                return route
        return None


def _probing(figures: ProbeFigures, at: int) -> Violation:
    told = f"{figures.resources} different resources that are not its own, or not there, within"
    told += f" {_seconds(figures.since, at)}, {figures.successes} of {figures.calls} calls successful"
    return Violation("probing", figures.since, at, f"abuse: {told}")


def _seconds(since: int, until: int) -> str:
    seconds = max(1, round((until - since) / SECOND))
    return "1 second" if seconds == 1 else f"{seconds} seconds"


def evaluate(entries: Iterable[Entry], rules: Abuse) -> Violation | None:
    """The first violation on a token whose calls these are, in the order of time; None where there is none."""
    evaluation = Evaluation(rules)
    return next((violation for entry in entries if (violation := evaluation.see(entry)) is not None), None)
