"""Write output files. A file appears under its name only when it is complete."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from musicsvc.cli.session import Session
from musicsvc.errors import Failure

STDOUT = Path("-")
SQLITE = b"SQLite format 3\0"  # the first bytes of databases and of their backups


def folder_of(out: Path) -> Path | None:
    """Return the folder of the output file, where temporary files can be written too. None if `out` is no file."""
    return None if out == STDOUT or (out.exists() and not out.is_file()) else out.parent


def echo_written(session: Session, out: Path) -> None:
    if out != STDOUT:
        session.echo(f"Written to {out}.")


@contextmanager
def open_output(out: Path) -> Iterator[IO[bytes]]:
    """Open the output file, or stdout for `-`. After an error, an existing file with this name is unchanged."""
    if out == STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    if out.is_dir():
        raise Failure(f"{out} is a folder. Name a file to write.")
    if out.exists() and not out.is_file():  # a pipe or a device
        with out.open("wb") as file:
            yield file
        return
    if _is_database(out):
        raise Failure(f"{out} is a SQLite database and was left unchanged. Name another file to write.")
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(out)
    except OSError as error:
        if error.filename in {None, str(part)}:
            error.filename = str(out)
        raise
    finally:
        part.unlink(missing_ok=True)


def _is_database(out: Path) -> bool:
    try:
        with out.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:  # missing, or not readable
        return False
