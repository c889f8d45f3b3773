"""Read the lines of plain and gzipped text files, with an error message for each kind of damage."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from musicsvc.errors import Failure
from musicsvc.store.importing.files.records import LONGEST_ROW, NONE, Limits

GZIP = b"\x1f\x8b"
BLANK = 16 * 1024  # lines before the first one with a text
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
PART = 65_536  # bytes
LINE = 16  # bytes that a line counts for in addition to its own, so that empty ones count too


class TooLongError(Failure):
    """A row is longer than LONGEST_ROW. The next line can be read."""


class Lines:
    """The lines of a plain or gzipped file, in UTF-8 or, with a byte order mark, in UTF-16, with their line breaks.

    `position`: file bytes read. `taken`: unpacked bytes read, and LINE for each line. `number`: of the last line, from
    1. Raises Failure if the file cannot be read.
    """

    def __init__(self, path: Path, limits: Limits = NONE) -> None:
        """Open the file. Raises Failure if it cannot be read."""
        self.path = path
        self._most = limits.text
        self.taken = 0
        self._row = self._quotes = 0  # bytes and quotes of the row so far
        self._begins = 1  # its first line
        self.quoted = False  # whether a line break within quotes does not end a row
        try:
            self.size = path.stat().st_size
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise unreadable(path, error) from None
        self.number = 0
        try:
            self._bytes = self._unpacked()
        except OSError as error:
            self.close()
            raise unreadable(path, error) from None

    def _unpacked(self) -> BinaryIO:
        """Return the bytes of the file without gzip, and in UTF-8 if they are in UTF-16."""
        packed = self._file.read(len(GZIP)) == GZIP

        def opened() -> BinaryIO:
            self._file.seek(0)
            return cast("BinaryIO", gzip.GzipFile(fileobj=self._file)) if packed else self._file

        wide = False
        with suppress(*BROKEN_GZIP):  # reported with the first line
            wide = opened().read(len(UTF16[0])) in UTF16
        return cast("BinaryIO", io.BufferedReader(_Recoded(opened()))) if wide else opened()

    def measure(self, most: int) -> int:
        """Return the number of bytes of the unpacked file, up to `most`. Raises Failure if it is damaged."""
        size = 0
        while size < most and (piece := self._next()):
            size += len(piece)
        return size

    @property
    def position(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def begin_row(self) -> int:
        """Begin a row with the next line, and return the number of that line."""
        self._row = self._quotes = 0
        self._begins = self.number + 1
        return self._begins

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line. Raises TooLongError if the row is too long with it; the next call goes on behind that.

        Raises Failure if the row does not end.
        """
        if not (raw := self._next()):
            raise StopIteration
        self.number += 1
        self._count(raw)
        if self._row > LONGEST_ROW:
            self._skip(raw)
        if self.number == 1:
            raw = raw.removeprefix(BYTE_ORDER_MARK)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.broken("is not UTF-8; save the file as CSV UTF-8, or as an Excel workbook") from None

    def _count(self, raw: bytes) -> None:
        self.taken += len(raw) + LINE
        self._row += len(raw)
        if self.quoted:
            self._quotes += raw.count(b'"')
        if self._most is not None and self.taken > self._most + LINE * self.number:
            raise Failure(f"{self.path} has more than {self._most // 2**20:,} MiB of text, unpacked. Split it.")

    def _skip(self, raw: bytes) -> NoReturn:
        """Read the rest of a row of which this is the last line so far, or its beginning, and raise TooLongError."""
        while not raw.endswith(b"\n") or self._quotes % 2:
            ended = raw.endswith(b"\n")
            if not (raw := self._next()):
                if self._quotes % 2:
                    raise self.broken("cannot be read as CSV: unexpected end of data", self._begins)
                break
            self.number += ended
            self._count(raw)
        raise TooLongError(self.broken(f"is longer than {LONGEST_ROW:,} bytes", self._begins).message)

    def _next(self) -> bytes:
        try:
            return self._bytes.readline(LONGEST_ROW + 1)
        except BROKEN_GZIP:
            raise Failure(f"{self.path} is damaged: the gzip data end unexpectedly after line {self.number}.") from None
        except UnicodeDecodeError:
            raise Failure(f"{self.path} is damaged: it is not UTF-16 after line {self.number}.") from None
        except OSError as error:
            raise unreadable(self.path, error) from None

    def broken(self, what: str, line: int | None = None) -> Failure:
        """Return a Failure with a text such as `FILE: line 7 is too long`, where `what` is `is too long`."""
        return Failure(f"{self.path}: line {line or self.number} {what}.")


class _Recoded(io.RawIOBase):
    """The bytes of a file in UTF-16 as UTF-8, without a byte order mark."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raw = b"more"
        while raw and not self._rest:
            raw = self._file.read(PART)
            self._rest = self._decoder.decode(raw, final=not raw).encode()
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def beginning(path: Path, size: int) -> tuple[bytes, bool]:
    """Return the first bytes of a file, unpacked if it is gzipped, and whether it is.

    Raises an error of BROKEN_GZIP for damaged gzip data, and Failure if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            return (gzip.GzipFile(fileobj=file) if packed else file).read(size), packed
    except BROKEN_GZIP:
        raise
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> Failure:
    return Failure(f"{path} cannot be read: {error.strerror or error}.")
