"""Print the results of commands on stdout, as a table, as one line per key, or as JSON."""

import json as jsonlib
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import typer

from musicsvc.cli.session import Session
from musicsvc.cli.table import NOTHING, Column, fit, headings, lines
from musicsvc.clock import isoformat
from musicsvc.wording import escape_controls

JSON = dict[str, Any]
T = TypeVar("T")


def format_time(instant: int | None) -> str | None:
    """Format a time in ISO 8601 for JSON output. Returns None for None."""
    return None if instant is None else isoformat(instant)


def print_json(value: object) -> None:
    """Print a JSON value in UTF-8, regardless of the encoding of stdout."""
    text = jsonlib.dumps(value, ensure_ascii=False, indent=2)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode() + b"\n")


def print_result(session: "Session", message: str, result: object, *, json: bool) -> None:
    """Report a change: print the message on stderr, and with `json` the changed object on stdout."""
    session.echo(message)
    if json:
        print_json(result)


def print_list(
    session: "Session",
    query: Callable[[], Iterable[T]],
    to_json: Callable[[T], JSON],
    columns: Iterable[str],
    *,
    json: bool,
) -> None:
    """Run a query in a read transaction and print its rows as a table or as JSON."""
    print_table(session, [to_json(row) for row in session.read(query)], columns, json=json)


def print_table(
    session: "Session", rows: Sequence[JSON], columns: Iterable[str], *, json: bool, cut: str | None = None
) -> None:
    """Print the given columns of the rows as a table, or with `json` all keys of the rows.

    If the terminal is too narrow, empty columns are left out first, then the last columns. `cut`: a column whose long
    words may be cut on a terminal.
    """
    if json:
        print_json(rows)
        return
    table = [
        Column(_title(key), [_cell(key, row[key]) for row in rows], whole=key == "email", cut=key == cut)
        for key in columns
    ]
    room, bold = _terminal()
    if room is not None:
        table, left_out = fit(table, room)
        if left_out:
            names = ", ".join(column.heading for column in left_out)
            session.echo_once(f"Left out at {room} columns: {names}. A wider terminal shows them, and so does --json.")
    for line in headings(table, room):
        typer.echo(typer.style(line, bold=True) if bold else line)
    typer.echo("".join(f"{line}\n" for line in lines(table, room)), nl=False)


def print_record(record: JSON, *, json: bool) -> None:
    """Print an object with one line for each key, or with `json` as JSON."""
    if json:
        print_json(record)
        return
    titles = Column("", [_title(key) for key in record], whole=True)
    values = Column("", [_cell(key, value) for key, value in record.items()])
    typer.echo("".join(f"{line}\n" for line in lines([titles, values], _terminal()[0])), nl=False)


def _title(key: str) -> str:
    name = key.removesuffix("_at").replace("_", " ")
    return f"{name} (UTC)" if key.endswith("_at") else name


def _cell(key: str, value: object) -> str:
    """Return the text of a table cell. Keys that end in `_at` are times and are shown without seconds."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key.endswith("_at"):
        return str(value)[:16].replace("T", " ")
    return escape_controls(str(value))


def _terminal() -> tuple[int | None, bool]:
    """Return the terminal width (None if stdout is no terminal), and whether it can show bold headings."""
    if not sys.stdout.isatty():
        return None, False
    from rich.console import Console

    console = Console()
    return shutil.get_terminal_size().columns, not (console.no_color or console.is_dumb_terminal)
