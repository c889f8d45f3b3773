"""What goes to stdout: a table, a record, or one JSON value and nothing else."""

import json as jsonlib
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from musicsvc.clock import isoformat

JSON = dict[str, Any]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value instead.")]
UNBOUNDED = 1_000_000  # columns; where nobody looks, nothing is folded


def moment(instant: int | None) -> str | None:
    """The instant as JSON holds it."""
    return None if instant is None else isoformat(instant)


def value(found: object) -> None:
    """One JSON value in UTF-8, whatever the terminal's encoding."""
    text = jsonlib.dumps(found, ensure_ascii=False, indent=2)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode() + b"\n")


def rows(found: Sequence[JSON], columns: Iterable[str], *, json: bool) -> None:
    """A list as a table of these keys; JSON holds every key."""
    if json:
        value(found)
        return
    keys = list(columns)
    _draw([_title(key) for key in keys], [[_cell(key, row[key]) for key in keys] for row in found])


def record(found: JSON, *, json: bool) -> None:
    """One thing, a line a key."""
    if json:
        value(found)
        return
    _draw(None, [[_title(key), _cell(key, part)] for key, part in found.items()])


def plain(text: str) -> str:
    """The text with control characters made visible, so that no name can steer the terminal."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _title(key: str) -> str:
    return key.removesuffix("_at").replace("_", " ")


def _cell(key: str, part: object) -> str:
    """A value in a table; keys in `_at` are instants, shown to the minute."""
    if part is None:
        return "-"
    if isinstance(part, bool):
        return "yes" if part else "no"
    if key.endswith("_at"):
        return str(part)[:16].replace("T", " ")
    return plain(str(part))


def _draw(titles: Sequence[str] | None, lines: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = UNBOUNDED
    table = Table(box=None, show_header=titles is not None, pad_edge=False, header_style="bold")
    for title in titles or ("", ""):
        table.add_column(title, overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    console.print(table)
