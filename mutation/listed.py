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


def equivalent(path: Path = EQUIVALENT) -> set[Key]:
    """The breaks that change nothing that a test can or should notice; each has its reason in the file."""
    if not path.exists():
        return set()
    entries = tomllib.loads(path.read_text("utf-8")).get("equivalent", [])
    return {(each["module"], each["function"], each["before"].strip(), each["after"].strip()) for each in entries}


def semantic(sources: Sequence[Source], path: Path = SEMANTIC) -> tuple[list[Break], list[str]]:
    """The breaks of a file, and the names of those that no longer fit one place of the code."""
    breaks, unfit = [], []
    for entry in tomllib.loads(path.read_text("utf-8"))["break"]:
        found = [*_fitting(entry, sources)]
        if len(found) == 1 and found[0].is_meant():
            breaks += found
        else:
            unfit.append(entry["name"])
    return breaks, unfit


def _fitting(entry: dict[str, str], sources: Sequence[Source]) -> Iterator[Break]:
    for source in sources:
        for match in re.finditer(entry["find"], source.content.decode(), re.MULTILINE):
            start, end = (len(match.string[:place].encode()) for place in match.span())
            suite = suites.at(source.suites, source.position(start))
            function, number = (suite.function, suite.number) if suite else ("", None)
            yield Break(source, function, number, entry["name"], (start, end), match.expand(entry["replace"]))
