"""Write output files. A file appears under its name only when it is complete."""

import fcntl
import glob
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from musicsvc import descriptors
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
def open_output(out: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open the output file, or stdout for `-`. After an error, an existing file with this name is unchanged.

    `mode`: the permissions of a new file, before the umask; an existing one keeps its own.
    """
    if out == STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    require_file(out)
    if out.exists() and not out.is_file():  # a pipe or a device
        with out.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(out)) if out.is_symlink() else out  # /dev/stdout is one, too
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    _remove_leftovers(target)
    try:
        with _create(part, mode) as file:
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        if error.filename in {None, str(part)}:
            error.filename = str(out)
        raise
    finally:
        with suppress(OSError):  # the error above is the one to report
            part.unlink(missing_ok=True)


def _create(part: Path, mode: int) -> IO[bytes]:
    """Create the file, and lock it as a sign that it is in use."""
    file = open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")  # noqa: PTH123, SIM115 - sets the mode
    with suppress(OSError):  # a file system without locks, where nothing is removed
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def _remove_leftovers(target: Path) -> None:
    """Delete what killed processes have written of the file."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.[0-9]*.part"):
        with suppress(OSError), descriptors.opened(part) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def require_file(out: Path) -> None:
    """Raise Failure if the output file is a folder, a database or a link to itself."""
    if out.is_dir():
        raise Failure(f"{out} is a folder. Name a file to write.")
    if out.is_file() and _is_database(out):
        raise Failure(f"{out} is a SQLite database and was left unchanged. Name another file to write.")
    if Path(os.path.realpath(out)).is_symlink():
        raise Failure(f"{out} is a link to itself. Name another file to write.")


def _is_database(out: Path) -> bool:
    try:
        with out.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:  # missing, or not readable
        return False
