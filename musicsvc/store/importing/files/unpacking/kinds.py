"""Tell what a zip file is by the names of its members."""

import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from musicsvc.errors import Failure

BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)  # RuntimeError: it has a password
DECLARATION = "mimetype"
HEAD = 4096  # bytes


def parts(path: str, _folder: str, options: dict[str, Any]) -> Iterator[Any]:
    """Yield which of the members in `options` the file has, and the kind that it declares.

    Raises Failure if it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            declared = b""
            if DECLARATION in names:
                with archive.open(DECLARATION) as member:
                    declared = member.read(HEAD)
    except BROKEN_ZIP:
        raise Failure(f"{path} is damaged: it cannot be read as a zip file.") from None
    yield {"members": [each for each in options["members"] if each in names], "declared": declared.decode("latin-1")}
