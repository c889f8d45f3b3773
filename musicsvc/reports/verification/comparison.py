"""Compare the rows of an export file with the rows that the database gives now."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from musicsvc.errors import Failure

Row = dict[str, Any]
Key = tuple[Any, ...]
ROW = "row"  # the column of a difference that concerns a whole row
MISSING, PRESENT = "missing", "present"


class Difference(NamedTuple):
    """A value that differs: the row's key, the column, the value in the file and the value now."""

    row: str
    column: str
    file: Any
    now: Any


def differences(file: Iterable[Row], now: Iterable[Row], keys: Sequence[str]) -> Iterator[Difference]:
    """Yield the differences between the rows of `file` and of `now`. Both must be sorted by the columns `keys`."""
    key = _reader(keys)
    written, current = _ascending(file, key), iter(now)
    left, right = next(written, None), next(current, None)
    while left is not None or right is not None:
        if right is None or (left is not None and key(left) < key(right)):
            yield Difference(_label(left, keys), ROW, PRESENT, MISSING)
            left = next(written, None)
        elif left is None or key(right) < key(left):
            yield Difference(_label(right, keys), ROW, MISSING, PRESENT)
            right = next(current, None)
        else:
            yield from _of_row(_label(left, keys), left, right)
            left, right = next(written, None), next(current, None)


def _of_row(label: str, left: Row, right: Row) -> Iterator[Difference]:
    for column, value in right.items():
        if left.get(column) != value:
            yield Difference(label, column, left.get(column), value)


def _reader(keys: Sequence[str]) -> Callable[[Row], Key]:
    return lambda row: tuple(row[key] for key in keys)


def _ascending(rows: Iterable[Row], key: Callable[[Row], Key]) -> Iterator[Row]:
    before: Key | None = None
    for row in rows:
        if before is not None and key(row) <= before:
            raise Failure(f"The rows of the file are not in the order of the export: {_text(key(row))} comes too late.")
        before = key(row)
        yield row


def _label(row: Row | None, keys: Sequence[str]) -> str:
    return "" if row is None else _text(tuple(row[key] for key in keys))


def _text(key: Key) -> str:
    return " ".join(filter(None, map(str, key)))
