"""Answers that may be longer than memory: written to a file within the unit, sent from it afterwards."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile, gettempdir
from typing import IO, TYPE_CHECKING

from musicsvc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

IN_MEMORY = 64 * 1024  # bytes; what is longer goes to a file that has no name and is gone when it is closed


@dataclass(frozen=True, slots=True)
class Spooled:
    """A file of so many bytes, read from its start; who sends it closes it."""

    file: IO[bytes]
    length: int
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


def spool(pieces: Iterable[bytes], content_type: str, headers: Mapping[str, str] | None = None) -> Spooled:
    """Write the pieces to a file, so that no snapshot is held while a client is slow. Raises Unavailable."""
    file: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by who sends it
    try:
        for piece in pieces:
            _write(file, piece)
        length = file.tell()
        file.seek(os.SEEK_SET)
    except BaseException:
        file.close()
        raise
    return Spooled(file, length, content_type, headers or {})


def _write(file: IO[bytes], piece: bytes) -> None:
    try:
        file.write(piece)
    except OSError as error:
        here = f"The temporary file of an export cannot be written in {gettempdir()}: {error.strerror}."
        raise Unavailable("There is no room for the export just now. Try again later.", here) from None
