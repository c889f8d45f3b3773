"""Text tables that fit the width of the terminal, without split words or trailing spaces."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest

GAP = 2
NARROW = 24  # the minimum width of a column that may split words
NOTHING = "-"
ELLIPSIS = "..."  # a terminal of any encoding can show it
_BETWEEN_WORDS = re.compile(r"(?<!\d\d-\d\d) +")  # 2026-01-31 12:00 is one word


class Column:
    """A column of a table: its heading, its cells, and the widths that it can have."""

    def __init__(self, heading: str, cells: Sequence[str], *, whole: bool = False, cut: bool = False) -> None:
        """`whole`: never split words. Otherwise words may be split to make the column as narrow as NARROW.

        `cut`: words that are longer than the column end in an ellipsis.
        """
        self.heading = heading
        self.cells = cells
        self.whole = whole
        self.cut = cut

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
