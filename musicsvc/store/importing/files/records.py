"""The interface of readers for all file formats, and the rows that they yield."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from musicsvc.errors import Failure

LETTERS = 26


class Record(NamedTuple):
    """A row of an imported file: the number of its first line, and its values by column."""

    line: int
    values: Mapping[str, Any]
    fault: str | None = None  # why the row cannot be read
    note: str | None = None  # a key of summary.NOTES if the row is skipped
    member: str | None = None  # the name of its file within an archive


class Reader(ABC):
    """Reads a file row by row. `columns` has the column names, or None if the columns differ between rows."""

    columns: list[str] | None
    size: int
    name: str = ""  # of the file, without its folder
    sheets: Sequence[str] = ()  # of a workbook; the first one is read
    remark: str = ""  # a sentence about which of several sheets is read

    @property
    @abstractmethod
    def position(self) -> int:
        """The amount read so far. It has the same unit as `size`: bytes, rows or entries."""

    def named(self, path: Path) -> Self:
        """Set the reader's name to that of the file, and return the reader."""
        self.name = path.name.encode(errors="replace").decode()
        return self

    @abstractmethod
    def __iter__(self) -> Iterator[Record]:
        """Yield the rows of the file. A reader can be iterated only once."""

    def close(self) -> None:  # noqa: B027 - a reader that loads the whole file has none open
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def headings(cells: Sequence[str], broken: Callable[[str], Failure]) -> list[str]:
    """Return the names of the columns. A column without one is called after its letter.

    `broken` makes the Failure that is raised if a name occurs twice, given what the line does.
    """
    names = [cell.strip() or f"(column {_letters(at)})" for at, cell in enumerate(cells)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise broken(f"names the column {twice[0]!r} twice; rename one")
    return names


def _letters(place: int) -> str:
    """Return the letters by which spreadsheets call a column: A, B, … Z, AA."""
    more, last = divmod(place, LETTERS)
    return (_letters(more - 1) if more else "") + chr(ord("A") + last)
