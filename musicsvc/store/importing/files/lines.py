"""Read the lines of plain and gzipped text files, with an error message for each kind of damage."""

import codecs
import gzip
import io
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from musicsvc.errors import Failure
from musicsvc.store.importing.files import encodings
from musicsvc.store.importing.files.records import LONGEST_ROW, NONE, TOO_LONG, Limits, UnclearError

GZIP = b"\x1f\x8b"
BLANK = 16 * 1024  # lines before the first one with a text
BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
HEAD = 4096  # bytes
PART = 65_536  # bytes
LINE, BLANK_LINE = 16, 60  # characters that a line counts for in addition to its own: a blank one takes time, too
ESCAPED = "surrogateescape"  # how bytes that are not UTF-8 come through as text
Read = TypeVar("Read", bytes, str)


# A line, as its number from 1, its text, and why it cannot be read; of one that is too long, the text is an odd quote.
Line = tuple[int, str, str]


class Lines:
    r"""The lines of a plain or gzipped file, with their line breaks: `\n`, `\r\n` or `\r`.

    `encoding`: that of the file, as the user says; otherwise its beginning tells it, or the first line that is not
    ASCII. `position`: file bytes read. `taken`: characters read, and LINE or BLANK_LINE for each line. `number`: of the
    last line, from 1. Raises Failure if the file cannot be read.
    """

    def __init__(self, path: Path, limits: Limits = NONE, encoding: str | None = None) -> None:
        """Open the file, which is read once. Raises Failure if it cannot be read."""
        self.path = path
        self._most = limits.text
        self.taken = self.number = self._free = 0
        self.is_guessed = False
        self._ahead: deque[str] = deque()
        try:
            self.size = path.stat().st_size
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise unreadable(path, error) from None
        try:
            self._bytes, found = self._unpacked()
        except OSError as error:
            self.close()
            raise unreadable(path, error) from None
        self._codec = found if encoding is None or (found and encoding == encodings.UTF16) else encoding
        self._is_wide = (self._codec or "").startswith(encodings.UTF16)
        as_read = (self._codec, "strict") if self._is_wide else (encodings.UTF8, ESCAPED)
        self._text = io.TextIOWrapper(self._bytes, *as_read, newline="")

    def _unpacked(self) -> tuple[BinaryIO, str | None]:
        """Return the bytes of the file without gzip, and the encoding that its beginning tells."""
        packed = self._file.read(len(GZIP)) == GZIP

        def opened() -> BinaryIO:
            self._file.seek(0)
            return cast("BinaryIO", gzip.GzipFile(fileobj=self._file)) if packed else self._file

        found = None
        with suppress(*BROKEN_GZIP):  # reported with the first line
            found = encodings.of_beginning(opened().read(HEAD))
        return opened(), found

    @property
    def encoding(self) -> str:
        """The name of the encoding, as far as the file is read."""
        return encodings.ENCODINGS[self._codec or encodings.UTF8]

    def measure(self, most: int) -> int:
        """Return the number of bytes of the unpacked file, up to `most`. Raises Failure if it is damaged."""
        size = 0
        while size < most and (piece := self._read(self._bytes.read, PART)):
            size += len(piece)
        return size

    def copy(self, file: BinaryIO) -> None:
        """Write the text in UTF-8. Raises Failure if it is damaged or in another encoding."""
        pieces = iter(partial(self._read, self._bytes.read, PART), b"")
        try:
            file.writelines(text.encode() for text in codecs.iterdecode(pieces, self._codec or encodings.UTF8))
        except UnicodeError:
            raise Failure(f"{self.path} is damaged or not {self.encoding}.") from None

    @property
    def position(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines. Raises Failure for damage."""
        while line := self._ahead.popleft() if self._ahead else self._read(self._text.readline, LONGEST_ROW + 1):
            fault = ""
            self.number += 1
            line = line.lstrip(encodings.BYTE_ORDER_MARK)  # also where files were joined
            self._count(line)
            if len(line) > LONGEST_ROW:
                line, fault = self._skip(line), TOO_LONG
            elif not (line.isascii() or self._is_wide):
                line, fault = self._decoded(line)
            yield self.number, line, fault

    def _count(self, line: str) -> None:
        extra = BLANK_LINE if line.isspace() else LINE
        self.taken += len(line) + extra
        self._free += LINE if extra == LINE else 0  # blank ones are no rows, of which there is a limit
        if self._most is not None and self.taken > self._most + self._free:
            raise Failure(f"{self.path} has more than {self._most // 2**20:,} MiB of text, unpacked. Split it.")

    def _skip(self, line: str) -> str:
        """Read the rest of a line, and return a quote if it has an odd number of them."""
        quotes = line.count('"')
        while line and not line.endswith(("\n", "\r")):
            line = self._ahead.popleft() if self._ahead else self._read(self._text.readline, LONGEST_ROW + 1)
            self._count(line)
            quotes += line.count('"')
        return '"' * (quotes % 2)

    def _decoded(self, line: str) -> tuple[str, str]:
        """Return a line as it is in the encoding of the file, which the first such line decides, and what is wrong."""
        raw = line.encode(encodings.UTF8, ESCAPED)
        if self._codec is None:
            self._codec = encodings.UTF8 if _is_utf8(line) else self._guess(raw)
        try:
            return raw.decode(self._codec), ""
        except UnicodeDecodeError:
            return raw.decode(self._codec, "replace"), f"the line is not {self.encoding}"

    def _guess(self, raw: bytes) -> str:
        """Return the encoding of the file, of which this is the first line that is neither ASCII nor UTF-8."""
        size = len(raw)
        while size < LONGEST_ROW and (line := self._read(self._text.readline, LONGEST_ROW + 1)):
            self._ahead.append(line)
            size += len(line)
        others = [line for line in self._ahead if not line.isascii()]
        if 2 * sum(map(_is_utf8, others)) > len(others):
            return encodings.UTF8
        found = encodings.guess(b"".join([raw, *(line.encode(encodings.UTF8, ESCAPED) for line in self._ahead)]))
        if found is None:
            what = f"{self.path}: line {self.number} is not UTF-8, and no guess at its encoding fits."
            raise UnclearError(what, "Name it with --encoding, such as shift_jis, or save the file as CSV UTF-8.")
        self.is_guessed = True
        return found

    def _read(self, read: Callable[[int], Read], size: int) -> Read:
        try:
            return read(size)
        except BROKEN_GZIP:
            raise Failure(f"{self.path} is damaged: the gzip data end unexpectedly after line {self.number}.") from None
        except UnicodeError:
            raise Failure(f"{self.path} is damaged or not {self.encoding} after line {self.number}.") from None
        except OSError as error:
            raise unreadable(self.path, error) from None

    def check_blank(self) -> None:
        """Raise Failure if the lines so far are too many, all of them blank."""
        if self.number > BLANK or self.taken > LONGEST_ROW:
            raise Failure(f"{self.path} begins with too many blank lines. Delete those before the headings.")

    def broken(self, what: str, line: int | None = None) -> Failure:
        """Return a Failure with a text such as `FILE: line 7 is too long`, where `what` is `is too long`."""
        return Failure(f"{self.path}: line {line or self.number} {what}.")


def _is_utf8(line: str) -> bool:
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def recode(path: Path, folder: Path, encoding: str) -> Path:
    """Write a copy of a file, unpacked and in UTF-8, into a folder. Raises Failure if it has another encoding."""
    target = folder / f"{path.name}.copy"
    with closing(Lines(path, encoding=encoding)) as lines, target.open("wb") as file:
        lines.copy(file)
    return target


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
