"""Helpers of all imports: split rows into batches, read cells, and lock out concurrent imports."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from musicsvc.store.engine.dialect import lock
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files.records import Record

T = TypeVar("T")
ROWS_A_UNIT = 500  # about 50 ms per transaction, so that a running server hardly waits
# Two concurrent imports would both find an item missing and both create it. On PostgreSQL, this lock prevents that.
LOCK_KEY = 0x6D737663


def in_batches(found: Iterable[T]) -> Iterator[list[T]]:
    """Yield lists of at most ROWS_A_UNIT rows. Each list is imported in one transaction."""
    stream = iter(found)
    while piece := list(islice(stream, ROWS_A_UNIT)):
        yield piece


def lock_imports() -> None:
    """Wait until no other import is writing. Call it in a write transaction."""
    lock(LOCK_KEY)


def read_cells(record: Record, columns: Columns, blanks: Sequence[str]) -> dict[str, list[Any]]:
    """Return the cells of a row of a file by field, as lists. Cells that equal a text in `blanks` become None."""
    found = columns.apply(record.values)
    if blanks:
        found = {name: [None if cell in blanks else cell for cell in held] for name, held in found.items()}
    return found


def resume_hint(through: int, *, dry_run: bool) -> str:
    """Return a sentence to append to an error message: how many rows (`through`) were imported before the error."""
    if dry_run or not through:
        return " Nothing was imported."
    return f" The first {through:,} rows were imported. Run the command again to continue."
