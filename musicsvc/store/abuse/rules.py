"""The abuse rules, evaluated over the logged calls of one token. A violation may lead to the token's revocation."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Literal, NamedTuple

from musicsvc.clock import SECOND
from musicsvc.config import Abuse
from musicsvc.store.abuse.probing_rule import FIRST_FAILURE, ProbeFigures, ProbingRule
from musicsvc.store.abuse.rate_limit_rule import RateLimitRule, RefusalFigures
from musicsvc.store.activity.calls import Entry
from musicsvc.wording import quantity

# A token scrapes a list if it got at least PAGES pages of it, and these are at least 1 in MOSTLY successful calls.
MOSTLY = 2
PAGES = 20
CATALOG_LISTS = {"albums", "artists", "tracks", "genres"}

Rule = Literal["excessive", "scraping", "probing"]


class Violation(NamedTuple):
    """A violation of a rule by the calls from `since` to `at` (microseconds). `reason` is a text for people."""

    rule: Rule
    since: int
    at: int
    reason: str


class Evaluation:
    """Applies all rules to the calls of one token. Calls must be added in order of time."""

    def __init__(self, rules: Abuse) -> None:
        self.refused = RefusalFigures()  # the numbers that came nearest to a violation
        self.probed = ProbeFigures()
        self._rate_limit_rule = RateLimitRule(rules)
        self._probing_rule = ProbingRule(rules)
        self._pages = _ListPages(rules.refusal_seconds * SECOND)

    def add(self, entry: Entry) -> Violation | None:
        """Add a call to all rules. Return the violation if this call completes one, else None."""
        if not entry.limits_apply:
            return None
        self._pages.add(entry)
        if (refused := self._rate_limit_rule.add(entry)) is not None:
            self.refused = max(self.refused, refused, key=lambda figures: (figures.refused, figures.early))
            if self._rate_limit_rule.violated(refused):
                return self._rate_limit_violation(refused, entry.at)
        if (probed := self._probing_rule.add(entry)) is not None:
            self.probed = max(self.probed, probed, key=self._nearness)
            if self._probing_rule.violated(probed):
                return _probing_violation(probed, entry.at)
        return None

    def _nearness(self, figures: ProbeFigures) -> tuple[bool, int]:
        return self._probing_rule.mostly_fails(figures), figures.resources

    def _rate_limit_violation(self, figures: RefusalFigures, at: int) -> Violation:
        route = self._pages.scraped_list(at)
        rule: Rule = "excessive" if route is None else "scraping"
        paging = "" if route is None else f", while paging through {route}"
        reason = f"{figures.refused} requests refused with 429 within {_seconds(figures.since, at)}"
        reason += ", without the pause that Retry-After asked for"
        return Violation(rule, figures.since, at, f"abuse: {reason}{paging}")


class _ListPages:
    """Finds a catalog list of which a token got many pages in the last `window` microseconds."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._successes: deque[tuple[int, str | None]] = deque()

    def add(self, entry: Entry) -> None:
        if entry.status < FIRST_FAILURE:
            route = entry.route or ""
            listed = entry.method == "GET" and route.rpartition("/")[2] in CATALOG_LISTS
            self._successes.append((entry.at, route if listed else None))
        while self._successes and self._successes[0][0] <= entry.at - self._window:
            self._successes.popleft()

    def scraped_list(self, at: int) -> str | None:
        lists = Counter(route for moment, route in self._successes if route is not None and moment > at - self._window)
        for route, pages in lists.most_common(1):
            if pages >= PAGES and pages * MOSTLY >= len(self._successes):
                return route
        return None


def _probing_violation(figures: ProbeFigures, at: int) -> Violation:
    reason = f"{figures.resources} different resources that belong to others or do not exist, within"
    reason += f" {_seconds(figures.since, at)}, {figures.successes} of {figures.calls} calls successful"
    return Violation("probing", figures.since, at, f"abuse: {reason}")


def _seconds(since: int, until: int) -> str:
    return quantity(max(1, round((until - since) / SECOND)), "second")


def evaluate(entries: Iterable[Entry], rules: Abuse) -> Violation | None:
    """Return the first violation by a token's calls, or None. The calls must be in order of time."""
    evaluation = Evaluation(rules)
    return next((violation for entry in entries if (violation := evaluation.add(entry)) is not None), None)
