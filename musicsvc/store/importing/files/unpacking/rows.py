"""Rows as the limited program prints them: a line of JSON each.

A row is `[number, cells]`. `cells` is a list, or an object if the columns differ between rows. JSON lacks some types,
so that a third element may list `[place, type]` of such cells. A row of a history also has the fields of its Record.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

from musicsvc.store.importing.files.records import Record

PACK: dict[type, Callable[[Any], Any]] = {
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: timedelta.total_seconds,
    Decimal: str,
    bytes: bytes.hex,
}
UNPACK: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda seconds: timedelta(seconds=seconds),
    "Decimal": Decimal,
    "bytes": bytes.fromhex,
    "int": int,
    "float": float,
}
LARGEST = 2**63 - 1  # integers beyond are packed


def packed(cells: Any, places: Iterable[Any]) -> list[tuple[Any, str]]:
    """Replace what JSON cannot hold among the cells at these places. Return the types of those by place."""
    found = []
    for place in places:
        cell = cells[place]
        kind = type(cell)
        if pack := PACK.get(kind):
            cells[place] = pack(cell)
            found.append((place, kind.__name__))
        elif (kind is int and abs(cell) > LARGEST) or (kind is float and not isfinite(cell)):
            cells[place] = str(cell)
            found.append((place, kind.__name__))
    return found


def from_record(record: Record) -> list[Any]:
    """Return a record as it is printed."""
    values = dict(record.values)
    return [record.line, values, packed(values, values), record.fault, record.note, record.member, record.to_minute]


def to_record(row: Sequence[Any], columns: Sequence[str] | None) -> Record:
    number, cells, *more = row
    for place, kind in more[0] if more else ():
        cells[place] = UNPACK[kind](cells[place])
    values: Mapping[str, Any] = cells if columns is None else dict(zip(columns, cells, strict=True))
    return Record(number, values, *more[1:])


def weight(value: Any) -> int:
    """Return the number of characters in a cell, or more if it holds others."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list):
        return len(value) + sum(map(weight, value))
    if isinstance(value, dict):
        return sum(weight(key) + weight(each) for key, each in value.items())
    return 1
