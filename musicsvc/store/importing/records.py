"""Records, and the interface of readers for all file formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self


class Record(NamedTuple):
    """A row of a file: the number of its first line, and values by column. `fault` says why it cannot be read.

    `note` is a key of summary.NOTES if the row is left out; `member` is the name of its file within an archive.
    """

    line: int
    values: Mapping[str, Any]
    fault: str | None = None
    note: str | None = None
    member: str | None = None


class Reader(ABC):
    """Reader of an open file. `columns` is None if the columns differ between rows."""

    columns: list[str] | None
    size: int

    @property
    @abstractmethod
    def position(self) -> int:
        """The amount read so far, in the unit of `size` (bytes or records)."""

    @abstractmethod
    def __iter__(self) -> Iterator[Record]:
        """Yield the records. A reader can be iterated only once."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
