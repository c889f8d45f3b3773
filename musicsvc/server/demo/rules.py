"""The rules with which the demo injects faults into many requests. Handlers and the event loop share them."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from musicsvc.errors import Conflict, NotFound
from musicsvc.server.demo.faults import Injection, inject

MOST_RULES = 1000
SEED = 0


@dataclass(frozen=True, slots=True)
class Match:
    """The requests that a rule concerns; None: all. `route`: a path as in the OpenAPI document."""

    method: str | None = None
    route: str | None = None
    token: str | None = None

    def covers(self, method: str, route: str, token: str | None) -> bool:
        wanted = ((self.method, method), (self.route, route), (self.token, token))
        return all(expected in {None, actual} for expected, actual in wanted)


@dataclass(slots=True)
class Rule:
    """A fault for the requests that `match` covers, with this probability, at most `count` times if it is not None.

    `fault`: its notation, which is known.
    """

    id: int
    match: Match
    fault: str
    probability: float
    count: int | None
    seed: int
    injected: int = 0
    random: Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - reproducible on purpose

    def draw(self) -> Injection | None:
        """Return the fault if this request gets it. Each call takes the next numbers of the rule's own sequence."""
        if self.count is not None and self.injected >= self.count:
            return None
        if self.random.random() >= self.probability:
            return None
        self.injected += 1
        return inject(self.fault, f"rule {self.id}", self.random)


class Rules:
    """All rules, oldest first. The first one that injects its fault decides."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: dict[int, Rule] = {}
        self._last_id = 0

    def add(self, match: Match, fault: str, probability: float, count: int | None, seed: int) -> Rule:
        """Add a rule. Raises Conflict if there are too many."""
        with self._lock:
            if len(self._rules) >= MOST_RULES:
                raise Conflict(f"There are {MOST_RULES:,} rules. Delete some: DELETE /demo/faults deletes all.")
            self._last_id += 1
            rule = Rule(self._last_id, match, fault, probability, count, seed)
            self._rules[rule.id] = rule
            return rule

    def list(self) -> Sequence[Rule]:
        with self._lock:
            return [*self._rules.values()]

    def delete(self, rule_id: int) -> None:
        """Delete a rule. Raises NotFound if there is none with this id."""
        with self._lock:
            if self._rules.pop(rule_id, None) is None:
                raise NotFound("There is no such rule.")

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def draw(self, method: str, route: str, token: str | None) -> Injection | None:
        """Return the fault that the rules inject into this request, or None."""
        if not self._rules:
            return None
        with self._lock:
            drawn = (rule.draw() for rule in self._rules.values() if rule.match.covers(method, route, token))
            return next(filter(None, drawn), None)
