"""Responses of any length: written to a temporary file in a transaction, and sent from the file afterwards."""

import errno
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from musicsvc import descriptors
from musicsvc.errors import Unavailable

IN_MEMORY = 64 * 1024  # bytes; longer responses go to an unnamed file, which is deleted when it is closed
FULL = {errno.ENOSPC, errno.EDQUOT}
NO_SPACE = "There is not enough disk space for the export. Try again later."
NOT_WRITABLE = "The server cannot write exports at the moment. Try again later, or ask its operator."


@dataclass(frozen=True, slots=True)
class Spooled:
    """A response body in a file, positioned at its start, after `begin`. The code that sends it closes the file."""

    file: IO[bytes]
    length: int
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    begin: bytes = b""


def spool(
    pieces: Iterable[bytes], folder: Path, content_type: str, headers: Mapping[str, str] | None = None
) -> Spooled:
    """Write the pieces to a file in `folder`, so that a slow client keeps no transaction open.

    Raises Unavailable if the file cannot be written.
    """
    with suppress(OSError):  # a short response needs no file
        descriptors.make_folder(folder)
    file: IO[bytes] = SpooledTemporaryFile(IN_MEMORY, dir=str(folder))  # noqa: SIM115 - the sender closes it
    try:
        for piece in pieces:  # may also write temporary files
            file.write(piece)
        length = file.tell()
        file.seek(os.SEEK_SET)
    except OSError as error:
        file.close()
        here = f"The temporary file of an export cannot be written in {folder}: {error.strerror}."
        raise Unavailable(NO_SPACE if error.errno in FULL else NOT_WRITABLE, here) from None
    except BaseException:
        file.close()
        raise
    return Spooled(file, length, content_type, headers or {})
