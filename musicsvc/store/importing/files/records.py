"""The interface of readers for all file formats, and the rows that they yield."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from musicsvc.errors import Failure
from musicsvc.limited import Pause
from musicsvc.wording import cut

LETTERS = 26
LONGEST_HEADING = 255  # characters
MOST_COLUMNS = 1000
LONGEST_ROW = 1024 * 1024  # bytes, or characters of a workbook
TOO_LONG = "the row is longer than 1 MiB"
REFUSED = ("line", "reason")  # the first headings of a file of refused rows
REPEATED = "headings"  # the note of rows that repeat the headings, as in files that were joined
FIGURE = "plays_total"  # a column that only our own exports have
HEADINGS_WITHIN = 20  # rows that are not empty
SAMPLE = 500  # rows
SAMPLE_CELLS = 50_000
SAMPLE_PIECES = 2  # between which the reader pauses: about 2 MiB


class UnclearError(Failure):
    """A file does not tell its format or its columns. `what`: the reason, without the remedy on the command line."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} {remedy}")
        self.what = what
        self.remedy = remedy


class Record(NamedTuple):
    """A row of an imported file: the number of its first line, and its values by column."""

    line: int
    values: Mapping[str, Any]
    fault: str | None = None  # why the row cannot be read
    note: str | None = None  # a key of summary.NOTES if the row is skipped
    member: str | None = None  # the name of its file within an archive
    to_minute: bool = False  # whether the time of a play is cut to the minute


class Remark(NamedTuple):
    """A sentence about what a file left open and how it is read, and the remedy on the command line."""

    what: str
    remedy: str = ""


Step = Record | Pause


def sample(steps: Iterator[Step]) -> Iterator[Record]:
    """Yield the first rows: up to SAMPLE of them, SAMPLE_CELLS or SAMPLE_PIECES, whichever comes first."""
    rows = cells = pieces = 0
    for step in steps:
        if isinstance(step, Record):
            yield step
            rows += 1
            cells += len(step.values)
        elif step is Pause.FULL:
            pieces += 1
        if rows >= SAMPLE or cells >= SAMPLE_CELLS or pieces >= SAMPLE_PIECES:
            return


class Limits(NamedTuple):
    """Limits of reading a file. None: any amount.

    `text`: the bytes of unpacked text. `history`: those of a listening history, which is read as a whole. `seconds`: of
    CPU, for a file that another process unpacks. `heed` is called while that process has not begun, and may raise.
    """

    text: int | None = None
    history: int | None = None
    seconds: int | None = None
    heed: Callable[[], None] = lambda: None


NONE = Limits()


class Reader(ABC):
    """Reads a file row by row. `columns` has the column names, or None if the columns differ between rows."""

    columns: list[str] | None
    size: int
    name: str = ""  # of the file, without its folder
    sheets: Sequence[str] = ()  # of a workbook; the first one is read
    skipped: Sequence[int] = ()  # the lines above the headings
    is_history = False  # in the format of another service
    _read: int = 0

    @property
    def encoding(self) -> str:
        """The encoding of a text file, as far as it is read."""
        return ""

    @property
    def remarks(self) -> Sequence[Remark]:
        """The sentences about what the file left open."""
        if not self.skipped:
            return ()
        lines = "lines" if len(self.skipped) > 1 else "line"
        return [Remark(f"Left out above the headings: {lines} {', '.join(map(str, self.skipped))}.")]

    @property
    def position(self) -> int:
        """The amount read so far. It has the same unit as `size`: bytes, rows or entries."""
        return self._read

    def named(self, path: Path) -> Self:
        """Set the reader's name to that of the file, and return the reader."""
        self.name = path.name.encode(errors="replace").decode()
        return self

    @abstractmethod
    def steps(self) -> Iterator[Step]:
        """Yield the rows of the file, and pauses between them. A reader can be iterated only once."""

    def __iter__(self) -> Iterator[Record]:
        """Yield the rows of the file."""
        return (step for step in self.steps() if isinstance(step, Record))

    def close(self) -> None:  # noqa: B027 - a reader that loads the whole file has none open
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Through(Reader):
    """Reads another reader, and has its members. Subclasses change its rows or its steps."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.columns, self.size, self.name = reader.columns, reader.size, reader.name
        self.sheets, self.is_history = reader.sheets, reader.is_history

    def steps(self) -> Iterator[Step]:
        return (step if isinstance(step, Pause) else self.changed(step) for step in self._reader.steps())

    def changed(self, record: Record) -> Record:
        """Return the row to yield in place of one of the other reader."""
        return record

    @property
    def encoding(self) -> str:
        return self._reader.encoding

    @property
    def remarks(self) -> Sequence[Remark]:
        return self._reader.remarks

    @property
    def position(self) -> int:
        return self._reader.position

    def close(self) -> None:
        self._reader.close()


class Keys:
    """The keys of the rows of JSON, of which there may be MOST_COLUMNS."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def fault(self, row: Mapping[str, Any]) -> str | None:
        """Remember the keys of a row. Return why they are no headings, or None."""
        if row.keys() <= self._known:
            return None
        if any(len(key) > LONGEST_HEADING for key in row):
            return f"a key is longer than {LONGEST_HEADING} characters"
        if len(self._known | row.keys()) > MOST_COLUMNS:
            return f"with the keys of this row, the file has more than {MOST_COLUMNS:,} columns"
        self._known |= row.keys()
        return None


def headings_at(rows: Sequence[Sequence[Any]]) -> int:
    """Return which of the first rows of a table, none of them empty, has the headings. Above are titles and the like.

    It is the first one more than half as full as the fullest of those rows that are as wide as most.
    """
    widths = Counter(map(len, rows))
    width = max(widths, key=lambda each: each * widths[each] * (widths[each] > 1))
    if widths[width] == 1:
        return 0
    fullest = max(filled(row) for row in rows if len(row) == width)
    at = next(at for at, row in enumerate(rows) if 2 * filled(row) > fullest <= len(row))
    as_first = [place for place, row in enumerate(rows) if len(row) == len(rows[0]) != width]
    below = sum(place > at for place in as_first)  # then the wide rows are the faulty ones
    return 0 if 2 * below > len(as_first) else at


def filled(cells: Sequence[Any]) -> int:
    """Return the number of cells that are not empty."""
    return sum(cell != "" for cell in cells)


def headings(cells: Sequence[str], broken: Callable[[str], Failure]) -> list[str]:
    """Return the names of the columns. A column without one is called after its letter.

    `broken` makes the Failure that is raised if there are too many, if one is too long or if one occurs twice, given
    what the line does.
    """
    check_headings(cells, broken)
    names = [cell.strip() or f"(column {_letters(at)})" for at, cell in enumerate(cells)]
    found: set[str] = set()
    twice = {name for name in names if name in found or found.add(name)}  # type: ignore[func-returns-value]
    if twice:
        raise broken(f"names the column {cut(min(twice))!r} twice; rename one")
    return names


def check_headings(cells: Iterable[str], broken: Callable[[str], Failure]) -> None:
    """Raise the Failure that `broken` makes if there are too many headings, or if one is too long."""
    for number, cell in enumerate(cells, 1):
        if number > MOST_COLUMNS:
            raise broken(f"has more than {MOST_COLUMNS:,} columns; leave out those that are not needed")
        if len(cell) > LONGEST_HEADING and len(cell.strip()) > LONGEST_HEADING:
            raise broken(f"has a heading of more than {LONGEST_HEADING} characters, {cut(cell.strip())!r}; shorten it")


def repeats(cells: Sequence[Any], first: Sequence[Any]) -> bool:
    """Return True for the cells of the headings."""
    return len(first) > 1 and cells == first


def is_quoted(cells: Sequence[str]) -> bool:
    """Return True for the headings of refused rows or of exports as CSV, whose cells `wording.unquoted` takes back."""
    return tuple(cells[:2]) == REFUSED or FIGURE in cells


def _letters(place: int) -> str:
    """Return the letters by which spreadsheets call a column: A, B, … Z, AA."""
    more, last = divmod(place, LETTERS)
    return (_letters(more - 1) if more else "") + chr(ord("A") + last)
