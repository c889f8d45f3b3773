"""Print the results of commands on stdout: as JSON, a line per key, or a table that fits the width of the terminal."""

import json as jsonlib
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, TypeVar

import typer

from musicsvc.cli.session import Session
from musicsvc.store.plays.periods import to_date
from musicsvc.wording import escape_controls

GAP = 2
NARROW = 24  # the minimum width of a column that may split words
NOTHING = "-"
ELLIPSIS = "..."  # a terminal of any encoding can show it
_BETWEEN_WORDS = re.compile(r"(?<!\d\d-\d\d) +")  # 2026-01-31 12:00 is one word
JSON = dict[str, Any]
T = TypeVar("T")


def format_day(day: int | None) -> str | None:
    """Format the number of a day as a date for JSON output. Returns None for None and for 0, which is no day."""
    return to_date(day).isoformat() if day else None


def print_json(value: object) -> None:
    """Print a JSON value in UTF-8, regardless of the encoding of stdout."""
    text = jsonlib.dumps(value, ensure_ascii=False, indent=2)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode() + b"\n")


def print_json_array(values: Iterable[object]) -> None:
    """Print values as a JSON array, each as soon as it is there."""
    sys.stdout.flush()
    write, separator = sys.stdout.buffer.write, b"[\n"
    for value in values:
        write(separator + jsonlib.dumps(value, ensure_ascii=False).encode())
        separator = b",\n"
    write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def print_result(session: Session, message: str, result: object) -> None:
    """Report a change: print the message on stderr, and with `--json` the changed object on stdout."""
    session.echo(message)
    if session.json:
        print_json(result)


def print_list(
    session: Session, query: Callable[[], Iterable[T]], to_json: Callable[[T], JSON], columns: Iterable[str]
) -> None:
    """Run a query in a read transaction and print its rows as a table or as JSON."""
    print_table(session, [to_json(row) for row in session.read(query)], columns)


def print_table(
    session: Session, rows: Sequence[JSON], columns: Iterable[str], *, cut: str | None = None, prose: bool = False
) -> None:
    """Print the given columns of the rows as a table, or with `--json` all keys of the rows.

    If the terminal is too narrow, empty columns are left out first, then the last columns. `cut`: a column whose long
    words may be cut on a terminal. `prose`: cells are sentences, which are wrapped in a pipe too.
    """
    if session.json:
        print_json(rows)
        return
    table = [
        Column(_title(key), [_cell(key, row[key]) for row in rows], whole=key == "email", cut=key == cut)
        for key in columns
    ]
    room, bold = _terminal()
    if prose:
        room = shutil.get_terminal_size().columns  # of the variable COLUMNS, or 80, in a pipe
    if room is not None:
        table, left_out = fit(table, room)
        if left_out:
            names = ", ".join(column.heading for column in left_out)
            session.echo_once(f"Left out at {room} columns: {names}. A wider terminal shows them, and so does --json.")
    for line in headings(table, room):
        typer.echo(typer.style(line, bold=True) if bold else line)
    typer.echo("".join(f"{line}\n" for line in lines(table, room)), nl=False)


def print_record(session: Session, record: JSON) -> None:
    """Print an object with one line for each key, or with `--json` as JSON."""
    if session.json:
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


@dataclass(eq=False)
class Column:
    """A column of a table: its heading, its cells, and the widths that it can have.

    `whole`: never split words. Otherwise words may be split to make the column as narrow as NARROW.
    `cut`: words that are longer than the column end in an ellipsis.
    """

    heading: str
    cells: Sequence[str]
    whole: bool = False
    cut: bool = False

    @cached_property
    def natural(self) -> int:
        """The width in characters at which no cell is wrapped."""
        return max(map(width, (self.heading, *self.cells)))

    @cached_property
    def longest_word(self) -> int:
        parts = (self.heading, *self.cells)
        return max(width(word) for part in parts for word in _words(part))

    @property
    def least(self) -> int:
        """The minimum width in characters. If there is less space, the column is left out."""
        return self.longest_word if self.whole else min(self.longest_word, NARROW)


def width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(columns: Sequence[Column], room: int) -> tuple[list[Column], list[Column]]:
    """Return the columns that fit into `room` characters, and the other columns. Empty columns are left out first."""
    kept = list(columns)
    while len(kept) > 1 and sum(column.least + GAP for column in kept) - GAP > room:
        empty = (column for column in reversed(kept[1:]) if set(column.cells) <= {NOTHING})
        kept.remove(next(empty, kept[-1]))
    return kept, [column for column in columns if column not in kept]


def lines(columns: Sequence[Column], room: int | None) -> Iterator[str]:
    """Yield the lines of the table without headings. `room`: the width in characters, or None to never wrap cells."""
    widths = _widths(columns, room)
    shown = [_cut_words(column, at_most) for column, at_most in zip(columns, widths, strict=True)]
    for cells in zip(*shown, strict=True):
        yield from _row(cells, widths)


def headings(columns: Sequence[Column], room: int | None) -> Iterator[str]:
    """Yield the lines of the headings, wrapped like the rows."""
    return _row([column.heading for column in columns], _widths(columns, room))


def _widths(columns: Sequence[Column], room: int | None) -> list[int]:
    """Return the width of each column in characters. Avoiding split words is preferred to avoiding wrapped cells."""
    if room is None:
        return [column.natural for column in columns]
    widths = [column.least for column in columns]
    spare = room - sum(widths) - GAP * (len(widths) - 1)
    for wanted in ([column.longest_word for column in columns], [column.natural for column in columns]):
        while spare > 0 and (short := [index for index, each in enumerate(widths) if each < wanted[index]]):
            widths[min(short, key=widths.__getitem__)] += 1
            spare -= 1
    return widths


def _row(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    wrapped = [_wrap(cell, at_most) for cell, at_most in zip(cells, widths, strict=True)]
    for parts in zip_longest(*wrapped, fillvalue=""):
        padded = [
            part + " " * (max(at_most - width(part), 0) + GAP) for part, at_most in zip(parts, widths, strict=True)
        ]
        yield "".join(padded).rstrip()


def _cut_words(column: Column, at_most: int) -> Sequence[str]:
    """Return the cells of a column; with `cut`, words of more than `at_most` characters end in an ellipsis."""
    if not column.cut or column.longest_word <= at_most:
        return column.cells
    return [" ".join(_cut(word, at_most) for word in _words(cell)) for cell in column.cells]


def _cut(word: str, at_most: int) -> str:
    if width(word) <= at_most:
        return word
    kept = word[: at_most - len(ELLIPSIS)]
    while width(kept) > at_most - len(ELLIPSIS):
        kept = kept[:-1]
    return kept + ELLIPSIS


def _words(text: str) -> list[str]:
    return _BETWEEN_WORDS.split(text)


def _wrap(text: str, at_most: int) -> list[str]:
    """Break the text between words into lines of at most `at_most` characters. A longer word gets a separate line."""
    if width(text) <= at_most:
        return [text]
    found: list[str] = []
    for word in _words(text):
        if found and width(found[-1]) + 1 + width(word) <= at_most:
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found
