"""Read histories entry by entry, and other files that contain one JSON value.

Errors name the number of an entry, from 1, in place of a line.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from musicsvc.errors import Failure
from musicsvc.store.importing.files.encodings import BYTE_ORDER_MARK
from musicsvc.store.importing.files.lines import BROKEN_GZIP, beginning
from musicsvc.store.importing.files.records import Keys, Reader, Record, Step, Through

LARGEST = 512 * 1024 * 1024
# Returns the fields of a play, or why to skip the entry (a key of summary.NOTES). May raise as `entry_record` expects.
Values = Callable[[Any], Mapping[str, Any] | str]


def load(path: Path) -> Any:
    """Return the JSON value in a plain or gzipped file. Raises Failure if it cannot be read."""
    try:
        raw, _ = beginning(path, LARGEST + 1)
    except BROKEN_GZIP:
        raise Failure(f"{path} is damaged: the gzip data end unexpectedly.") from None
    if len(raw) > LARGEST:
        raise Failure(f"{path} is larger than {LARGEST:,} bytes. Split it into several files.")
    try:
        return orjson.loads(raw.removeprefix(BYTE_ORDER_MARK.encode()))
    except orjson.JSONDecodeError as error:
        raise Failure(f"{path} is not valid JSON in UTF-8: {error}.") from None


class Document(Reader):
    """Reads a file that is one JSON value, in which `entries` finds the list of entries: None if it has none."""

    columns = None

    def __init__(self, entries: Callable[[Any], list[Any] | None], values: Values, what: str, path: Path) -> None:
        """Read the whole file. Raises Failure if it is not `what`."""
        found = entries(load(path))
        if found is None:
            raise Failure(f"{path} is not {what}.")
        self._entries = found
        self._values = values
        self.size = len(found)

    def steps(self) -> Iterator[Step]:
        for number, entry in enumerate(self._entries, 1):
            self._read = number
            yield entry_record(number, entry, self._values)


class Table(Document):
    """Reads a table: the objects in a JSON array, in the only list of objects that an object holds, or in an export."""

    def __init__(self, path: Path) -> None:
        super().__init__(_objects, dict, "a JSON array of objects. JSON Lines is expected, one object per line", path)
        self._keys = Keys()

    def steps(self) -> Iterator[Step]:
        for number, entry in enumerate(self._entries, 1):
            self._read = number
            fault = self._keys.fault(entry) if isinstance(entry, dict) else "the entry is not a JSON object"
            yield Record(number, entry) if fault is None else Record(number, {"row": entry}, fault)


def _objects(value: Any) -> list[Any] | None:
    if not isinstance(value, dict):
        return value if isinstance(value, list) else None
    if isinstance(data := value.get("data"), dict) and isinstance(rows := data.get("rows"), list):
        return rows  # of an export of this service
    with suppress(AttributeError, KeyError, TypeError):  # playlists of Spotify's account data
        return [
            {"playlist": each["name"], **(item["track"] or {})} for each in value["playlists"] for item in each["items"]
        ]
    lists = [each for each in value.values() if isinstance(each, list) and any(isinstance(row, dict) for row in each)]
    return lists[0] if len(lists) == 1 else None if lists else [value]


class Converted(Through):
    """Reads another reader, each of whose sound rows is an entry. Users cannot map its columns."""

    def __init__(self, values: Values, reader: Reader) -> None:
        super().__init__(reader)
        self.columns = None
        self._values = values

    def changed(self, record: Record) -> Record:
        return record if record.fault or record.note else entry_record(record.line, record.values, self._values)


def entry_record(number: int, entry: Any, values: Values) -> Record:
    """Convert an entry to a Record with the function `values`. Skipped entries get a `note`, invalid ones a `fault`."""
    try:
        found = values(entry)
    except KeyError as missing:
        return Record(number, {"entry": entry}, f"the entry has no {missing.args[0]}")
    except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
        return Record(number, {"entry": entry}, "the entry does not have the expected form")
    return Record(number, {}, note=found) if isinstance(found, str) else Record(number, found)
