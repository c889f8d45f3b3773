"""Divide the lines of CSV into rows: the csv module where it can, and with care the rows at which it stops."""

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, cast

from musicsvc.store.importing.files.lines import Line, Lines
from musicsvc.store.importing.files.records import HEADINGS_WITHIN, LONGEST_ROW, MOST_COLUMNS, TOO_LONG, headings_at

SEPARATORS = ",;\t|"
NAMED = re.compile(r'"?sep=([^"\w])"?[\r\n]*')  # the first line of a file for Excel
BEFORE_QUOTE = re.compile(r' *+"')
QUOTED = re.compile(r'([^"]*+(?:""[^"]*+)*+)("?) *+')  # from behind the opening quote on
MOST_SIGNS = 16 * MOST_COLUMNS  # separators of a line at which one looks
BREAK = 4  # characters that a line of a row counts for besides its own, so that empty ones count too
OPEN = "a quote is not closed"
TORN = 'text follows a closing quote; write a quote within quotes as ""'
Cells = list[str]
Row = tuple[int, Cells | None, str, str]  # its first line, and its cells, or why it cannot be read, and its text


class Dialect(NamedTuple):
    """The way a table is written: its separator, the number of its columns, and the line of its headings."""

    sign: str
    width: int
    line: int


class Rows:
    """The rows of a table, blank ones too, each with the number of its first line. What is skipped is blank.

    A quote that is never closed makes no long row: where the quotes of a row are wrong, or reach over more than
    LONGEST_ROW, only its first line is refused. It is read if its last cell alone lacks a closing quote, and between
    tabs a quote that is wrong is a sign like others. `_known` keeps this linear: from each line up to that one on, a
    text within quotes is known to end badly.
    """

    def __init__(self, lines: Lines, comments: tuple[str, ...] = ()) -> None:
        """Read rows from lines, but not from those that begin with one of `comments`."""
        self._lines = lines
        self._source = (line for line in lines if not line[1].startswith(comments)) if comments else iter(lines)
        self._queue: deque[Line] = deque()  # lines that were read ahead
        self._first: Line | None = None  # of the next row for the csv module
        self._more: list[Line] = []  # the other lines that it has of the row
        self._known = 0
        self._is_skipping = False
        self.use(Dialect(",", 0, 1))

    def use(self, dialect: Dialect) -> None:
        self.sign, self._width, _ = dialect
        self._cells = csv.reader(self._fed(), delimiter=self.sign, skipinitialspace=True, strict=True)

    def __iter__(self) -> Iterator[Row]:
        sign = self.sign
        while (line := self._take()) is not None:
            number, text, fault = line
            if fault:
                yield number, None, fault, text.rstrip("\r\n")
            elif '"' not in text:
                yield number, text.rstrip("\r\n").split(sign, MOST_SIGNS), "", ""
            else:
                yield self._quoted(line)
                while self._is_skipping and (line := self._take()) is not None:  # to the end of a row that is too long
                    _, self._is_skipping, _ = divide(line[1], sign, within=True)
                    yield line[0], [], "", ""

    def _take(self) -> Line | None:
        return self._queue.popleft() if self._queue else next(self._source, None)

    def _fed(self) -> Iterator[str]:
        """Yield the lines of a row to the csv module as long as it asks for more, and the row may have them."""
        size = 0
        while True:
            line, self._first = self._first, None
            if line is not None:
                size = 0
            elif self.sign == "\t" or (line := self._take()) is None:
                return
            else:
                self._more.append(line)
            number, text, fault = line
            size += len(text) + BREAK
            if self._more and (fault or number <= self._known or size > LONGEST_ROW):
                return
            yield text

    def _quoted(self, line: Line) -> Row:
        """Return the row that begins with a line that has a quote."""
        if line[0] < self._known:
            return self._careful(line)
        self._first, self._more = line, []
        try:
            return line[0], next(self._cells), "", ""
        except (csv.Error, StopIteration):
            self.use(Dialect(self.sign, self._width, 0))  # this reader has ended
            self._queue.extendleft(reversed(self._more))
            return self._careful(line)

    def _careful(self, line: Line) -> Row:
        """Return the row that begins with a line, and of which the csv module makes none."""
        number, text, _ = line
        cells, is_open, fault = divide(text, self.sign)
        if is_open and (whole := self._go_on(line, [*cells])) is not None:
            return whole
        plain = text.rstrip("\r\n")
        if is_open and self.sign == "\t":
            cells[-1] = plain.rpartition("\t")[2]
        elif is_open and len(cells) == self._width:
            cells[-1] = cells[-1].rstrip("\r\n")
        elif is_open or fault:
            return number, None, fault or OPEN, plain
        return number, cells, "", ""

    def _go_on(self, first: Line, cells: Cells) -> Row | None:
        """Return the row of which the last of these cells is open, or None if only its first line can be read."""
        number, begun, _ = first
        taken: list[Line] = []
        parts, size = [cells.pop()], len(begun)
        more, is_open, torn = list[str](), True, ""
        while is_open and not torn and size <= LONGEST_ROW and (line := self._take()) is not None:
            taken.append(line)
            at, text, fault = line
            if at <= self._known or (fault and fault != TOO_LONG):
                break
            size += LONGEST_ROW if fault else len(text) + BREAK
            more, is_open, torn = divide(text, self.sign, within=True)
            if torn:
                break
            parts.append(more[0])
            if is_open and len(more) > 1:
                cells += ["".join(parts), *more[1:-1]]
                parts = [more[-1]]
        if not (is_open or torn or size > LONGEST_ROW):
            return number, [*cells, "".join(parts), *more[1:]], "", ""
        alike = sum(text.count(self.sign) + 1 == self._width for _, text, _ in taken)
        if size > LONGEST_ROW and 2 * alike <= len(taken):  # these are hardly rows
            self._is_skipping = is_open
            return number, None, TOO_LONG, ""
        if taken:
            self._known = max(self._known, taken[-1][0])
        self._queue.extendleft(reversed(taken))
        return None

    def fit(self) -> int:
        """Find out from the first lines how the table is written, and return the line of its headings.

        Of all separators, that one is taken that divides most rows into as many cells as there are headings. Raises
        Failure for many blank lines.
        """
        first: list[Line] = []
        filled = 0
        while filled < HEADINGS_WITHIN and self._lines.taken <= LONGEST_ROW and (line := self._take()) is not None:
            first.append(line)
            filled += bool(line[1].strip() or line[2])
            if not filled:
                self._lines.check_blank()
        named = NAMED.fullmatch(first[0][1]) if first else None
        if named:
            del first[0]
        self._queue.extend(first)
        signs = named[1] if named else [sign for sign in SEPARATORS if any(sign in text for _, text, _ in first)]
        found = [_tried(first, sign) for sign in signs or SEPARATORS[0]]
        _, dialect = max(found, key=lambda each: each[0])
        self.use(dialect)
        return dialect.line


def _tried(lines: Sequence[Line], sign: str) -> tuple[tuple[int, int], Dialect]:
    """Return how well a separator fits the first lines, and the dialect that it makes."""
    sound = [line for line in lines if not line[2] and line[1].count(sign) <= MOST_SIGNS]
    table = csv.reader((text for _, text, _ in sound), delimiter=sign, skipinitialspace=True)
    rows: list[tuple[int, Cells]] = []
    begins = 0
    with suppress(csv.Error):  # a cell is too long
        for cells in table:
            if any(cells):
                rows.append((sound[begins][0], cells))
            begins = table.line_num
    if not rows:
        return (0, 0), Dialect(sign, 0, 0)
    at = headings_at([cells for _, cells in rows])
    line, headings = rows[at]
    width = len(headings)
    return (sum(len(cells) == width for _, cells in rows[at:]) if width > 1 else 0, width), Dialect(sign, width, line)


def divide(text: str, sign: str, *, within: bool = False) -> tuple[Cells, bool, str]:
    """Divide a line into cells. Return also whether the last one has no closing quote, and what is wrong with quotes.

    `within`: the line begins within quotes, between which there can be tabs on one line only. What has wrong quotes has
    at most MOST_COLUMNS cells.
    """
    body = text.rstrip("\r\n")
    tabbed = sign == "\t"
    cells: Cells = []
    at = 0
    while len(cells) <= MOST_COLUMNS:
        if within or BEFORE_QUOTE.match(body, at):
            found = cast("re.Match[str]", QUOTED.match(body, at if within else body.index('"', at) + 1))
            cell, behind = found[1].replace('""', '"'), body[found.end() : found.end() + 1]
            is_long = tabbed and sign in found[1] and (within or not found[2])
            if not is_long and not found[2]:
                return [*cells, cell + text[len(body) :]], True, ""
            if not is_long and behind in {"", sign}:
                cells.append(cell)
                if not behind:
                    return cells, False, ""
                at, within = found.end() + 1, False
                continue
            if within or not tabbed:
                return cells, False, TORN
        stop = body.find(sign, at)
        if stop < 0:
            return [*cells, body[at:]], False, ""
        cells.append(body[at:stop])
        at = stop + 1
    return cells, False, TORN
