"""Recordings: which tests execute which suite, and how long each test takes."""

from __future__ import annotations

import ast
import json
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import compress, count
from pathlib import Path
from typing import TYPE_CHECKING

from mutation import instrument, suites
from mutation.project import Copy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutation.project import Project

# Maximum number of tests, and of files, that a thin recording keeps per function.
THIN_TESTS, THIN_FILES = 2, 4


@dataclass
class Traced:
    """A function as it was recorded: a digest of its code, and the tests of each suite."""

    digest: str
    tests: list[set[str]]

    @property
    def all(self) -> set[str]:
        """The tests of any suite."""
        return set().union(*self.tests)


@dataclass
class Recording:
    """The seconds of the tests that passed, and the functions that they execute by module and name."""

    seconds: dict[str, float] = field(default_factory=dict)
    functions: dict[str, dict[str, Traced]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read a recording; return an empty one if there is no file."""
        if not path.exists():
            return cls()
        held = json.loads(path.read_text("utf-8"))
        ids = [test for test, _ in held["tests"]]
        functions = {
            module: {
                name: Traced(digest, [{ids[number] for number in tests} for tests in branches])
                for name, (digest, branches) in traced.items()
            }
            for module, traced in held["functions"].items()
        }
        return cls(dict(held["tests"]), functions)

    def save(self, path: Path) -> None:
        """Write the recording."""
        numbers = {test: number for number, test in enumerate(self.seconds)}
        functions = {
            module: {
                name: (each.digest, [sorted(numbers[test] for test in tests) for tests in each.tests])
                for name, each in traced.items()
            }
            for module, traced in self.functions.items()
        }
        path.parent.mkdir(exist_ok=True)
        lines = [f"{json.dumps(module)}: {json.dumps(traced)}" for module, traced in functions.items()]
        tests = json.dumps(list(self.seconds.items()))
        path.write_text(f'{{"tests": {tests}, "functions": {{\n{f",{chr(10)}".join(lines)}\n}}}}\n', "utf-8")

    def tests(self, module: str, function: str, number: int) -> set[str]:
        """The tests that execute a suite."""
        traced = self.functions.get(module, {}).get(function)
        return traced.tests[number] if traced else set()

    def weights(self) -> Counter[str]:
        """Return the number of suites that each test executes."""
        branches = (tests for traced in self.functions.values() for each in traced.values() for tests in each.tests)
        return Counter(test for tests in branches for test in tests)

    def without(self, files: Sequence[str]) -> Recording:
        """The recording less the tests of these files and folders."""

        def stays(test: str) -> bool:
            path = Path(test.partition("::")[0])
            return not any(path.is_relative_to(file) for file in files)

        kept = set(filter(stays, self.seconds))
        functions = {
            module: {name: Traced(each.digest, [tests & kept for tests in each.tests]) for name, each in traced.items()}
            for module, traced in self.functions.items()
        }
        return Recording({test: seconds for test, seconds in self.seconds.items() if test in kept}, functions)

    def thinned(self) -> Recording:
        """The recording with a few cheap tests of each function: for each suite, and from several files."""
        weights = self.weights()
        ranks = {test: (self.seconds[test] * weights[test], test) for test in self.seconds}
        functions = {
            module: {name: Traced("", [set(_few(each, ranks))]) for name, each in traced.items()}
            for module, traced in self.functions.items()
        }
        kept = set().union(*(each.all for traced in functions.values() for each in traced.values()))
        return Recording({test: seconds for test, seconds in self.seconds.items() if test in kept}, functions)

    def adapted(self, project: Project) -> Recording:
        """Return the recording adapted to the current code: a changed function keeps its tests on every suite."""
        gone = {
            file for file in {test.partition("::")[0] for test in self.seconds} if not (project.root / file).exists()
        }
        if gone:
            return self.without(sorted(gone)).adapted(project)
        functions = {}
        for module in project.modules():
            found = suites.find(ast.parse(project.source(module)))
            digests, sizes = suites.fingerprints(found), Counter(suite.function for suite in found)
            recorded = self.functions.get(module, {})
            functions[module] = {
                name: _adapted(recorded.get(name), digest, sizes[name]) for name, digest in digests.items()
            }
        return Recording(dict(self.seconds), functions)


def _few(traced: Traced, ranks: Mapping[str, tuple[float, str]]) -> Iterator[str]:
    yield from (min(tests, key=ranks.__getitem__) for tests in traced.tests if tests)
    files: Counter[str] = Counter()
    for test in sorted(traced.all, key=ranks.__getitem__):
        file = test.partition("::")[0]
        files[file] += 1
        if files[file] <= THIN_TESTS and len(files) <= THIN_FILES:
            yield test


def _adapted(traced: Traced | None, digest: str, size: int) -> Traced:
    if traced is None:
        return Traced(digest, [set() for _ in range(size)])
    return traced if traced.digest == digest else Traced(digest, [set(traced.all) for _ in range(size)])


class FailedError(Exception):
    """The recording run failed; the message is its output."""


def record(project: Project, tests: Sequence[str], workers: int, known: Recording) -> tuple[Recording, list[str]]:
    """Run tests on the unbroken code; return the extended recording, and the tests that did not pass."""
    with Copy(project) as copy, tempfile.TemporaryDirectory() as folder:
        places = instrument.package(project, copy)
        recording = known.without(tests or ["."]).adapted(project)
        copy.configure("mutation_hits", {"folder": folder, "suites": len(places)})
        parallel = ["-n", str(workers)] if workers > 1 else []
        output = Path(folder) / "output"
        copy.start(["-q", "-p", "mutation_trace", *parallel, *tests], output).wait()
        lines = list(_lines(Path(folder)))
        if not lines:
            raise FailedError(output.read_text("utf-8"))
        started = _started(Path(folder), len(places))
    for test, passed, seconds, executed, shared in lines:
        if passed:
            recording.seconds[test] = seconds
            for number in set(executed).union(*(started[owner] for owner in (test, *shared))):
                module, function, suite = places[number]
                recording.functions[module][function].tests[suite].add(test)
    return recording, [test for test, passed, *_ in lines if not passed]


def _lines(folder: Path) -> Iterator[tuple[str, bool, float, list[int], list[str]]]:
    for file in sorted(folder.glob("tests-*.jsonl")):
        yield from map(json.loads, file.read_text("utf-8").splitlines())


def _started(folder: Path, size: int) -> defaultdict[str, set[int]]:
    """The suites that other processes executed, by the test or fixture that started them."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for file in folder.glob("*.hits"):
        content = file.read_bytes()
        found[content[size:].decode()].update(compress(count(), content[:size]))
    return found
