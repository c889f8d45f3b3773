"""JSON files that are one value: read whole, then entry by entry, counted from 1."""

from __future__ import annotations

import gzip
import zlib
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import orjson

from musicsvc.errors import Failure
from musicsvc.store.importing.files import BYTE_ORDER_MARK, GZIP, unreadable
from musicsvc.store.importing.readers import Reader, Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LARGEST = 512 * 1024 * 1024


def load(path: Path) -> Any:
    """The JSON value of a file, plain or gzipped. Raises Failure."""
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            raw = (gzip.GzipFile(fileobj=file) if packed else file).read(LARGEST + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise Failure(f"{path} is damaged: the gzip data break off.") from None
    except OSError as error:
        raise unreadable(path, error) from None
    if len(raw) > LARGEST:
        raise Failure(f"{path} is larger than {LARGEST:,} bytes. Split it.")
    try:
        return orjson.loads(raw.removeprefix(BYTE_ORDER_MARK))
    except orjson.JSONDecodeError as error:
        raise Failure(f"{path} is not valid JSON in UTF-8: {error}.") from None


class Document(Reader):
    """A reader of the entries of one JSON value."""

    columns = None

    def __init__(self, path: Path) -> None:
        """Read the file; Failure where it is none of this kind."""
        self._path = path
        self._entries = self.entries(load(path))
        self._read = 0
        self.size = len(self._entries)

    @abstractmethod
    def entries(self, value: Any) -> list[Any]:
        """What is to be read one by one."""

    @abstractmethod
    def values(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """The fields of a play, or the note that says why the entry is none. Raises ValueError for a faulty one."""

    @property
    def position(self) -> int:
        """How many entries of `size` have been read."""
        return self._read

    def __iter__(self) -> Iterator[Record]:
        """The plays, and why other entries are none."""
        for number, entry in enumerate(self._entries, 1):
            self._read = number
            yield record(number, entry, self.values)

    def close(self) -> None:
        """Let the entries go."""
        self._entries = []

    def unlike(self, what: str) -> Failure:
        """The failure of a file that is of another kind."""
        return Failure(f"{self._path} is not {what}.")


def record(number: int, entry: Any, values: Any) -> Record:
    """The record of an entry: its fields, its fault, or the note that says why it is no play."""
    try:
        found = values(entry)
    except KeyError as missing:
        return Record(number, {"entry": entry}, f"the entry has no {missing.args[0]}")
    except (AttributeError, TypeError, ValueError):
        return Record(number, {"entry": entry}, "the entry is not what the format asks for")
    return Record(number, {}, note=found) if isinstance(found, str) else Record(number, found)
