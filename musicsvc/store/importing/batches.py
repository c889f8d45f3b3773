"""What every import has in common: rows by the hundred in units of their own, one import at a time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from musicsvc.store.engine.dialect import lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from musicsvc.store.importing.columns import Columns
    from musicsvc.store.importing.readers import Record

T = TypeVar("T")
ROWS_A_UNIT = 500  # some 50 ms, so that a running server hardly waits
# Two imports at once would both find something missing and both make it; on PostgreSQL they take turns by this lock.
TURN = 0x6D737663


def pieces(found: Iterable[T]) -> Iterator[list[T]]:
    """The rows in runs for one unit each."""
    stream = iter(found)
    while piece := list(islice(stream, ROWS_A_UNIT)):
        yield piece


def take_turn() -> None:
    """Wait until no other import writes; in a writing unit."""
    lock(TURN)


def cells(record: Record, columns: Columns, blanks: Sequence[str]) -> dict[str, list[Any]]:
    """What the row holds for each field; a cell of just one of the `blanks` is None."""
    found = columns.apply(record.values)
    if blanks:
        found = {name: [None if cell in blanks else cell for cell in held] for name, held in found.items()}
    return found


def left_off(through: int, *, dry_run: bool) -> str:
    """What to say of an import that broke off after so many rows."""
    if dry_run or not through:
        return " Nothing was imported."
    return f" The first {through:,} rows are in; a second run goes on from there."
