"""Read the lines of plain and gzipped UTF-8 files, with an error message for each kind of damage."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from musicsvc.errors import Failure

GZIP = b"\x1f\x8b"
LONGEST_LINE = 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Lines:
    """The lines of a plain or gzipped file. `position`: file bytes read. Raises Failure if the file cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.size = path.stat().st_size
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise unreadable(path, error) from None
        try:
            packed = self.starts_with(GZIP)
        except OSError as error:
            self.close()
            raise unreadable(path, error) from None
        self._bytes: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=self._file) if packed else self._file
        self.number = 0

    def starts_with(self, signature: bytes) -> bool:
        """Return True if the file starts with these bytes. Call this before reading the first line."""
        start = self._file.read(len(signature))
        self._file.seek(0)
        return start == signature

    @property
    def position(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[str]:
        """Yield the lines with their line breaks. `number` is the number of the last line yielded, from 1."""
        while raw := self._next():
            self.number += 1
            if len(raw) > LONGEST_LINE:
                raise self.broken(f"is longer than {LONGEST_LINE:,} bytes")
            if self.number == 1:
                raw = raw.removeprefix(BYTE_ORDER_MARK)
            try:
                yield raw.decode()
            except UnicodeDecodeError:
                raise self.broken("is not UTF-8; convert the file first") from None

    def _next(self) -> bytes:
        try:
            return self._bytes.readline(LONGEST_LINE + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise Failure(f"{self.path} is damaged: the gzip data end unexpectedly after line {self.number}.") from None
        except OSError as error:
            raise unreadable(self.path, error) from None

    def broken(self, what: str, line: int | None = None) -> Failure:
        """Return a Failure with a text such as `FILE: line 7 is too long`, where `what` is `is too long`."""
        return Failure(f"{self.path}: line {line or self.number} {what}.")


def unreadable(path: Path, error: OSError) -> Failure:
    return Failure(f"{path} cannot be read: {error.strerror or error}.")
