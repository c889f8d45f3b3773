"""Read files that contain one JSON value. Errors name the number of an entry, from 1, in place of a line."""

import gzip
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from musicsvc.errors import Failure
from musicsvc.store.importing.files.lines import BYTE_ORDER_MARK, GZIP, unreadable
from musicsvc.store.importing.files.records import Reader, Record, Step

LARGEST = 512 * 1024 * 1024


def load(path: Path) -> Any:
    """Return the JSON value in a plain or gzipped file. Raises Failure if it cannot be read."""
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            raw = (gzip.GzipFile(fileobj=file) if packed else file).read(LARGEST + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise Failure(f"{path} is damaged: the gzip data end unexpectedly.") from None
    except OSError as error:
        raise unreadable(path, error) from None
    if len(raw) > LARGEST:
        raise Failure(f"{path} is larger than {LARGEST:,} bytes. Split it into several files.")
    try:
        return orjson.loads(raw.removeprefix(BYTE_ORDER_MARK))
    except orjson.JSONDecodeError as error:
        raise Failure(f"{path} is not valid JSON in UTF-8: {error}.") from None


class Document(Reader):
    """Base class for readers of files that are one JSON value with a list of entries."""

    columns = None

    def __init__(self, path: Path) -> None:
        """Read the whole file. Raises Failure if it does not have the expected structure."""
        self._path = path
        self._entries = self.entries(load(path))
        self._read = 0
        self.size = len(self._entries)

    @abstractmethod
    def entries(self, value: Any) -> list[Any]:
        """Return the list of entries in `value`, the whole file. Raises Failure for an unexpected structure."""

    @abstractmethod
    def values(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """Return the fields of a play, or a reason to skip the entry (a key of summary.NOTES). Raises ValueError."""

    @property
    def position(self) -> int:
        return self._read

    def steps(self) -> Iterator[Step]:
        for number, entry in enumerate(self._entries, 1):
            self._read = number
            yield record(number, entry, self.values)

    def unlike(self, what: str) -> Failure:
        """Return a Failure with the path of the file and `what`, a predicate such as `is not an export`."""
        return Failure(f"{self._path} {what}.")


def record(number: int, entry: Any, values: Any) -> Record:
    """Convert an entry to a Record with the function `values`. Skipped entries get a `note`, invalid ones a `fault`."""
    try:
        found = values(entry)
    except KeyError as missing:
        return Record(number, {"entry": entry}, f"the entry has no {missing.args[0]}")
    except (AttributeError, TypeError, ValueError):
        return Record(number, {"entry": entry}, "the entry does not have the expected form")
    return Record(number, {}, note=found) if isinstance(found, str) else Record(number, found)
