"""The records of a file, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self


class Record(NamedTuple):
    """One row: the line on which it begins, its values by column, and the fault if the whole row is refused.

    `note` is a key of summary.NOTES for a row that is left out; `member` is the file within an archive.
    """

    line: int
    values: Mapping[str, Any]
    fault: str | None = None
    note: str | None = None
    member: str | None = None


class Reader(ABC):
    """An open file; `columns` is None if each row has its own."""

    columns: list[str] | None
    size: int

    @property
    @abstractmethod
    def position(self) -> int:
        """The part of `size` that has been read."""

    @abstractmethod
    def __iter__(self) -> Iterator[Record]:
        """Yield the records, once."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
