"""SHA-256 checksums over rows in canonical JSON (RFC 8785)."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

Row = dict[str, Any]


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
