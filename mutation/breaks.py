"""The breaks of a project, and samples of them."""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutation import suites
from mutation.operators import EXPRESSIONS
from mutation.statements import STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from mutation.operators import Change
    from mutation.source import Source, Span

Key = tuple[str, str, str, str]  # module, function, lines before, lines after


@dataclass(frozen=True)
class Break:
    """One place of a module, changed. `suite` is None outside of functions."""

    source: Source
    function: str
    suite: int | None
    kind: str
    span: Span
    text: str

    @property
    def module(self) -> str:
        return self.source.path

    @property
    def line(self) -> int:
        """The number of the first line that changes."""
        return self.source.position(self.span[0])[0]

    @property
    def content(self) -> bytes:
        """The broken module."""
        start, end = self.span
        return self.source.content[:start] + self.text.encode() + self.source.content[end:]

    @property
    def key(self) -> Key:
        """Names the break as long as its function and its lines stay, whatever moves around them."""
        start, end = self.source.lines(self.span)
        before = self.source.content[start:end]
        after = self.content[start : len(self.content) - len(self.source.content) + end]
        return self.module, self.function, _trimmed(before.decode()), _trimmed(after.decode())

    @property
    def diff(self) -> str:
        """The break as a patch."""
        old, new = (each.decode().splitlines() for each in (self.source.content, self.content))
        return "\n".join(difflib.unified_diff(old, new, self.module, self.module, n=3, lineterm=""))

    def is_meant(self) -> bool:
        """Whether the broken module compiles and does not mean the same."""
        try:
            return ast.dump(ast.parse(self.content)) != ast.dump(self.source.tree)
        except SyntaxError:
            return False


def _trimmed(lines: str) -> str:
    return "\n".join(line.strip() for line in lines.splitlines() if line.strip())


def of_module(source: Source) -> Iterator[Break]:
    """Every break of a module, also those that do not compile."""
    for place in source.places():
        for operator in (*EXPRESSIONS, *STATEMENTS):
            for change in operator(source, place):
                yield Break(source, place.function, _suite(source, place.function, change), *change)


def _suite(source: Source, function: str, change: Change) -> int | None:
    found = suites.at(source.suites, source.position(change.span[0]))
    # A default value stands in the suite around its function, and is evaluated there.
    return found.number if found is not None and found.function == function else None


def sample(breaks: Iterable[Break], size: int, seed: int, left_out: Collection[Key] = ()) -> list[Break]:
    """Draw breaks, one at most from each line of code, so that a module counts by its length.

    A line's turn is a digest of the seed and its text: changing one line leaves the rest of the sample as it is.
    """
    lines: defaultdict[tuple[str, str, int], list[Break]] = defaultdict(list)
    for each in breaks:
        lines[each.module, each.function, each.line].append(each)
    equal: Counter[Key] = Counter()
    turns = []
    for choices in lines.values():
        first = min(choices, key=lambda each: each.span).key
        equal[first] += 1
        turns.append((_digest(seed, *first[:3], str(equal[first])), choices))
    chosen: list[Break] = []
    for _, choices in sorted(turns, key=lambda turn: turn[0]):
        if len(chosen) == size:
            break
        choices.sort(key=lambda each: _digest(seed, *each.key))
        chosen += next(([each] for each in choices if each.key not in left_out and each.is_meant()), [])
    return chosen


def _digest(seed: int, *parts: str) -> str:
    return hashlib.sha256("\0".join([str(seed), *parts]).encode()).hexdigest()
