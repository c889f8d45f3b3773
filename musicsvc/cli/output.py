"""What goes to stdout: a table, a record, or one JSON value and nothing else."""

import json as jsonlib
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musicsvc.cli.table import NOTHING, Column, fit, headings, lines
from musicsvc.clock import isoformat
from musicsvc.wording import escape_controls

if TYPE_CHECKING:
    from musicsvc.cli.session import Session

JSON = dict[str, Any]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead.")]
Limit = Annotated[
    int | None, typer.Option(metavar="N", min=1, max=1_000_000, help="Only the newest N.", show_default=False)
]


def search_option(texts: str) -> Any:
    """The option `--search` of a list, which looks through these texts."""
    return typer.Option(
        metavar="TEXT",
        help=f"Only those with TEXT in their {texts}; case and accents do not matter.",
        show_default=False,
    )


def format_time(instant: int | None) -> str | None:
    """The instant as JSON holds it."""
    return None if instant is None else isoformat(instant)


def print_json(found: object) -> None:
    """One JSON value in UTF-8, whatever the terminal's encoding."""
    text = jsonlib.dumps(found, ensure_ascii=False, indent=2)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode() + b"\n")


def print_table(session: "Session", found: Sequence[JSON], columns: Iterable[str], *, json: bool) -> None:
    """Print a table of these keys, or as JSON every key.

    Where a terminal is too narrow for all columns, those in which no row has a value go first, then the last ones.
    """
    if json:
        print_json(found)
        return
    table = [Column(_title(key), [_cell(key, row[key]) for row in found], whole=key == "email") for key in columns]
    room, bold = _terminal()
    if room is not None:
        table, left_out = fit(table, room)
        if left_out:
            names = ", ".join(column.heading for column in left_out)
            session.echo_once(f"Left out at {room} columns: {names}. A wider terminal shows them, and so does --json.")
    for line in headings(table, room):
        typer.echo(typer.style(line, bold=True) if bold else line)
    typer.echo("".join(f"{line}\n" for line in lines(table, room)), nl=False)


def print_record(found: JSON, *, json: bool) -> None:
    """One thing, a line a key."""
    if json:
        print_json(found)
        return
    titles = Column("", [_title(key) for key in found], whole=True)
    parts = Column("", [_cell(key, part) for key, part in found.items()])
    typer.echo("".join(f"{line}\n" for line in lines([titles, parts], _terminal()[0])), nl=False)


def _title(key: str) -> str:
    return key.removesuffix("_at").replace("_", " ")


def _cell(key: str, part: object) -> str:
    """A value in a table; keys in `_at` are instants, shown to the minute."""
    if part is None:
        return NOTHING
    if isinstance(part, bool):
        return "yes" if part else "no"
    if key.endswith("_at"):
        return str(part)[:16].replace("T", " ")
    return escape_controls(str(part))


def _terminal() -> tuple[int | None, bool]:
    """The width of the terminal behind stdout, None where there is none, and whether headings may be bold."""
    if not sys.stdout.isatty():
        return None, False
    from rich.console import Console

    console = Console()
    return shutil.get_terminal_size().columns, not (console.no_color or console.is_dumb_terminal)
