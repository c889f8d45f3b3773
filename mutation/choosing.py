"""The tests to run against a break: the likely and quick ones first."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePath
from typing import TYPE_CHECKING

from mutation.related import Uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from mutation.breaks import Break
    from mutation.recording import Recording
    from mutation.source import Source

FIRST_TESTS = 12
FIRST_FILES = 3
FIRST_SECONDS = 4.0
WIDE_SHARE = 3  # a third of the budget, for breaks outside of functions
ABOUT = 0.2  # of the cost of others, for tests that import the module or are named after it
BESIDE = 0.02  # of the cost of others, for tests in the folder of the same name as the module's
START = 0.05  # seconds that every test costs


@dataclass(frozen=True)
class Choice:
    """Tests in running order: the first ones, then the rest; and the seconds of the tests left out."""

    first: list[str]
    rest: list[str]
    left_out: float


class Chooser:
    """Chooses tests by a recording."""

    def __init__(self, recording: Recording, root: Path, sources: Sequence[Source], budget: float) -> None:
        """`budget` bounds the seconds of tests that a break is worth."""
        self._recording = recording
        self._weights = recording.weights()
        self._uses = Uses(sources)
        self._budget = budget
        files = {test.partition("::")[0] for test in recording.seconds}
        self._imported = {file: imported(root / file) for file in files}

    def __call__(self, broken: Break) -> Choice:
        """The tests for a break."""
        ranked = sorted(self._concerned(broken), key=lambda test: (self._cost(test, broken), test))
        whole = [] if broken.suite is not None else self._recording.of_tables()
        first = [*whole, *(test for test in self._first(ranked) if test not in whole)]
        others = [test for test in ranked if test not in first]
        wide = self._within(self._wide(others), self._budget / WIDE_SHARE) if broken.suite is None else []
        left = self._budget - sum(self._recording.seconds[test] + START for test in wide)
        rest = [*self._within([test for test in others if test not in wide], left), *wide]
        left_out = sum(self._recording.seconds[test] for test in set(others) - set(rest))
        return Choice(first, _by_file(rest), left_out)

    def _wide(self, tests: Iterable[str]) -> list[str]:
        """Return the tests that execute the most code, such as those over all endpoints, without slow ones."""
        quick = (test for test in tests if self._recording.seconds[test] <= FIRST_SECONDS)
        return sorted(quick, key=lambda test: (-self._weights[test], test))

    def _within(self, tests: Sequence[str], budget: float) -> list[str]:
        """Return the tests up to the first that exceeds the budget."""
        seconds = accumulate(self._recording.seconds[test] + START for test in tests)
        return [test for test, needed in zip(tests, seconds, strict=True) if needed <= budget]

    def _cost(self, test: str, broken: Break) -> float:
        """Return a low cost for fast tests that execute little else: they are likely to be about the broken code."""
        module = PurePath(broken.module).with_suffix("")
        file = test.partition("::")[0]
        name = PurePath(file).stem.removeprefix("test_")
        about = module.stem in name or name in module.stem or ".".join(module.parts) in self._imported[file]
        beside = PurePath(file).parts[1:-1] == module.parts[1:-1]
        factor = (ABOUT if about else 1.0) * (BESIDE if beside else 1.0)
        return (START + self._recording.seconds[test]) * (self._weights[test] or 1) * factor

    def _first(self, ranked: Iterable[str]) -> list[str]:
        first: list[str] = []
        files: set[str] = set()
        seconds = 0.0
        for test in ranked:
            file = test.partition("::")[0]
            seconds += self._recording.seconds[test]
            if len(first) == FIRST_TESTS or (first and seconds > FIRST_SECONDS):
                break
            if file in files or len(files) < FIRST_FILES:
                files.add(file)
                first.append(test)
        return _by_file(first)

    def _concerned(self, broken: Break) -> set[str]:
        """Return the tests that execute the place, else the function, else the code that depends on it."""
        traced = self._recording.functions.get(broken.module, {})
        if broken.suite is not None and (found := self._recording.tests(broken.module, broken.function, broken.suite)):
            return found
        if broken.suite is None and broken.function in traced and (found := traced[broken.function].all):
            return found
        position = broken.source.position(broken.span[0])
        for places in self._uses.behind(broken.module, "" if broken.suite is None else broken.function, position):
            if found := self._tests_of(places):
                return found
        tests = set().union(*(each.all for each in traced.values()))
        return tests or self._tests_of(self._uses.mentioning(broken.module, position))

    def _tests_of(self, places: Iterable[tuple[str, str]]) -> set[str]:
        known = self._recording.functions
        found = (known.get(module, {}).get(function) for module, function in places)
        return set().union(*(traced.all for traced in found if traced))


def imported(path: Path) -> set[str]:
    """The dotted names that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _by_file(tests: Sequence[str]) -> list[str]:
    """The tests with those of one file together, so that a module's fixtures are made once."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return sorted(tests, key=lambda test: files.index(test.partition("::")[0]))
