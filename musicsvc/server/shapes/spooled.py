"""Responses of any length: written to a temporary file in a transaction, and sent from the file afterwards."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile, gettempdir
from typing import IO, TYPE_CHECKING

from musicsvc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

IN_MEMORY = 64 * 1024  # bytes; longer responses go to an unnamed file, which is deleted when it is closed


@dataclass(frozen=True, slots=True)
class Spooled:
    """A response body in a file, positioned at its start. The code that sends the body closes the file."""

    file: IO[bytes]
    length: int
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


def spool(pieces: Iterable[bytes], content_type: str, headers: Mapping[str, str] | None = None) -> Spooled:
    """Write the pieces to a file, so that a slow client keeps no transaction open. Raises Unavailable on errors."""
    file: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - the sender closes it
    try:
        for piece in pieces:  # may also write temporary files
            file.write(piece)
        length = file.tell()
        file.seek(os.SEEK_SET)
    except OSError as error:
        file.close()
        here = f"The temporary file of an export cannot be written in {gettempdir()}: {error.strerror}."
        raise Unavailable("There is not enough disk space for the export. Try again later.", here) from None
    except BaseException:
        file.close()
        raise
    return Spooled(file, length, content_type, headers or {})
