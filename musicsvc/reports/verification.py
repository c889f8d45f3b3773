"""Verification of exports: checksums over rows, and reading and comparing the rows of files (docs/exports.md)."""

import csv
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from musicsvc.errors import Failure
from musicsvc.reports.columns import Column

Row = dict[str, Any]
Key = tuple[Any, ...]
ROW = "row"  # the column of a difference that concerns a whole row
MISSING, PRESENT = "missing", "present"
READABLE = ("csv", "json")


class Checksum:
    """Counts rows, and computes the checksum over the rows as a canonical JSON array of objects."""

    def __init__(self) -> None:
        self.count = 0
        self._hash = hashlib.sha256(b"[")

    def add(self, row: Mapping[str, object]) -> None:
        self._hash.update(b"," * bool(self.count) + canonical(row))
        self.count += 1

    def watch(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[Sequence[object]]:
        """Yield the rows unchanged, and add each to the checksum."""
        for row in rows:
            self.add(dict(zip(columns, row, strict=True)))
            yield row

    def hexdigest(self) -> str:
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()


def canonical(row: Mapping[str, object]) -> bytes:
    """Return a row as canonical JSON: keys sorted, no spaces, UTF-8, whole numbers without a fraction."""
    return orjson.dumps({key: _number(value) for key, value in row.items()}, option=orjson.OPT_SORT_KEYS)


def of_rows(rows: Iterable[Mapping[str, object]]) -> Checksum:
    checksum = Checksum()
    for row in rows:
        checksum.add(row)
    return checksum


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def rows(path: Path, form: str, columns: Sequence[Column]) -> Iterator[Row]:
    """Yield the rows of a file in a format of READABLE. Raises Failure unless it has these columns."""
    try:
        yield from (_csv if form == "csv" else _json)(path, columns)
    except (csv.Error, ValueError, KeyError, TypeError) as error:
        raise Failure(
            f"{path} does not have the rows of an export in the format {form}. It was changed since. ({error})"
        ) from None


def _csv(path: Path, columns: Sequence[Column]) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        if next(lines, []) != [each.name for each in columns]:
            raise ValueError("the header row differs")
        for line in lines:
            yield {each.name: _from_csv(each, text) for each, text in zip(columns, line, strict=True)}


def _from_csv(column: Column, text: str) -> Any:
    if column.kind.is_text or text == "":
        return text or None
    return float(text) if "." in text else int(text)


def _json(path: Path, columns: Sequence[Column]) -> Iterator[Row]:
    for row in document(path)["data"]["rows"]:
        yield {each.name: row[each.name] for each in columns}


def document(path: Path) -> Row:
    """Return a JSON file's content. Raises Failure if it is not JSON."""
    try:
        found: Row = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise Failure(f"{path} is not a JSON file: {error}.") from None
    return found


class Difference(NamedTuple):
    """A value that differs: the row's key, the column, the value in the file and the value now."""

    row: str
    column: str
    file: Any
    now: Any


def differences(file: Iterable[Row], now: Iterable[Row], keys: Sequence[str]) -> Iterator[Difference]:
    """Yield the differences between the rows of `file` and of `now`. Both must be sorted by the columns `keys`."""
    key = _reader(keys)
    written, current = _ascending(file, keys), iter(now)
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
    """Return a function that reads the key of a row; rows without an id come last."""
    return lambda row: tuple((row[key] is None, row[key]) for key in keys)


def _ascending(rows: Iterable[Row], keys: Sequence[str]) -> Iterator[Row]:
    key = _reader(keys)
    before: Key | None = None
    for row in rows:
        if before is not None and key(row) <= before:
            raise Failure(
                f"The rows of the file are not in the order of the export: {_label(row, keys)} comes too late."
            )
        before = key(row)
        yield row


def _label(row: Row | None, keys: Sequence[str]) -> str:
    """Return the key of a row as text; that of the row of deleted tracks is the name in its place."""
    found = () if row is None else (row[key] for key in keys)
    return " ".join(filter(None, ("(deleted tracks)" if each is None else str(each) for each in found)))
