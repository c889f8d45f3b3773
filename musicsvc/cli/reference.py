"""The reference of every command, for docs/cli.md: `python -m musicsvc.cli.reference > docs/cli.md`."""

import sys
from collections.abc import Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

from musicsvc.cli.main import command

WIDTH = 100
HEAD = """# Command line

Made from the program itself by `python -m musicsvc.cli.reference > docs/cli.md`; a test holds the two together.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 141 nobody reads the
output any more. Results go to stdout, messages and errors to stderr.
"""


def markdown() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(f"## {path}\n\n```text\n{text}\n```\n" for path, text in _pages(command(), "musicsvc"))])


def _pages(below: TyperGroup | TyperCommand, path: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Each command's path and help, groups before what they hold."""
    name = path.rpartition(" ")[2]
    context = below.make_context(name, [], parent, resilient_parsing=True, terminal_width=WIDTH)
    yield path, below.get_help(context)
    if isinstance(below, TyperGroup):
        for part, inner in below.commands.items():
            if isinstance(inner, TyperGroup | TyperCommand) and not inner.hidden:
                yield from _pages(inner, f"{path} {part}", context)


if __name__ == "__main__":
    sys.stdout.write(markdown())
