"""Breaks written by hand: semantic ones to try, and equivalent ones to leave out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from mutation import suites
from mutation.breaks import Break

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutation.breaks import Key
    from mutation.source import Source

HERE = Path(__file__).parent
SEMANTIC = HERE / "semantic.toml"
EQUIVALENT = HERE / "equivalent.toml"


class UnknownError(Exception):
    """A listed break that fits no place of the code, or several."""


def equivalent(path: Path = EQUIVALENT) -> set[Key]:
    """The breaks that change nothing that a test can or should notice; each has its reason in the file."""
    if not path.exists():
        return set()
    entries = tomllib.loads(path.read_text("utf-8")).get("equivalent", [])
    return {(each["module"], each["function"], each["before"].strip(), each["after"].strip()) for each in entries}


def semantic(sources: Sequence[Source], path: Path = SEMANTIC) -> Iterator[Break]:
    """The breaks of a file: a pattern that fits one place of the package, and the text that replaces it."""
    for entry in tomllib.loads(path.read_text("utf-8"))["break"]:
        pattern = re.compile(entry["find"], re.MULTILINE)
        found = [(source, match) for source in sources for match in pattern.finditer(source.content.decode())]
        if len(found) != 1:
            raise UnknownError(f"{path.name}: {entry['name']!r} fits {len(found)} places: {entry['find']}")
        ((source, match),) = found
        start, end = (len(match.string[:place].encode()) for place in match.span())
        suite = suites.at(source.suites, source.position(start))
        function, number = (suite.function, suite.number) if suite else ("", None)
        broken = Break(source, function, number, entry["name"], (start, end), match.expand(entry["replace"]))
        if not broken.is_meant():
            raise UnknownError(f"{path.name}: {entry['name']!r} changes nothing, or is no Python: {broken.diff}")
        yield broken
