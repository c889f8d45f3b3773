"""What a SQLite file must be before it is opened, how a new one is made, and what SQLite's errors mean."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import peewee

from musicsvc import permissions
from musicsvc.errors import Damaged, Failure, Unavailable
from musicsvc.store.engine.url import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION_ID = 0x4D535643  # "MSVC"
LOG_ID = 0x4D53564C  # "MSVL", a log of calls
HEADER = b"SQLite format 3\x00"
HEADER_BYTES = 100
ERRORS = (peewee.PeeweeException, apsw.Error)  # Peewee leaves a few errors of the driver as they are
QUICK_CHECK_BYTES = 128 * 1024 * 1024
DAMAGED = "Restore a backup (musicsvc db restore FILE), or move the file away and run: musicsvc init"
# A file that cannot be made or extended is an I/O error as often as it is a full disk.
ROOMLESS = (apsw.FullError, apsw.IOError, apsw.CantOpenError)
PASSING = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.ReadOnlyError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.ProtocolError,
)
# What is told on this machine alone, of a file and of SQLite's own words.
CAUSES: dict[type[apsw.Error], str] = {
    apsw.FullError: "The disk of {file} is full. Make room on it, then try again.",
    apsw.IOError: "{file} cannot be read or written: {error}. Its disk may be full or failing.",
    apsw.CantOpenError: "{file} cannot be opened. {permissions} Its disk must have room.",
    apsw.ReadOnlyError: "{file} cannot be written. {permissions}",
    apsw.BusyError: "{file} is locked by another program. Try again shortly.",
    apsw.LockedError: "{file} is locked by another program. Try again shortly.",
}


class Roomless(Unavailable):
    """The disk does not take or give what it is asked for; it may be full."""


class Unopened(Failure):
    """The same when a database is opened."""


class Foreign(Failure):
    """A database of another program."""


def create(path: Path, application_id: int = APPLICATION_ID) -> None:
    """Make an empty database file, readable by its owner alone, in a folder of the same kind. Never replaces one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists():
        return
    # Made aside and linked into place whole: who is killed here leaves no half-made database behind.
    with tempfile.TemporaryDirectory(prefix=".init-", dir=path.parent) as aside:
        draft = Path(aside) / path.name
        draft.touch(0o600)
        connection = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute(f"PRAGMA application_id = {application_id}")
            connection.pragma("journal_mode", "wal")
        finally:
            connection.close()
        with suppress(FileExistsError):  # another process was first, its file stands
            place(draft, path)


def place(draft: Path, path: Path) -> None:
    """Give the file its name, also on the disk. Raises FileExistsError where it is taken."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError from None
        draft.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in the folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EBADF, errno.ENOTSUP}:  # some network's disks know no such thing
            raise
    finally:
        os.close(descriptor)


def examine(path: Path, application_id: int = APPLICATION_ID) -> None:
    """Refuse what is not a sound database of ours; the file is never changed.

    Raises Failure that names the file and the way out, Damaged where it is broken.
    """
    try:
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
    except FileNotFoundError:
        raise Failure(f"There is no database at {path}. Run: musicsvc init") from None
    except PermissionError as error:
        raise Failure(f"The database {path} cannot be opened: {error.strerror}. {_permissions(path)}") from None
    except OSError as error:
        raise Failure(f"The database {path} cannot be opened: {error.strerror}.") from None
    if not header:
        raise Damaged(f"The database {path} is empty (0 bytes). {DAMAGED}")
    wal = path.with_name(path.name + "-wal")
    pending = wal.exists() and wal.stat().st_size > 0
    # A power cut can tear the first page while the WAL is taken over, which has it whole then: SQLite itself must look.
    if not (header.startswith(HEADER) or pending):
        raise Damaged(f"{path} is not a SQLite database. {DAMAGED}")
    foreign = Foreign(f"{path} belongs to another program. Point database_url or MUSICSVC_DATA_DIR elsewhere.")
    own = application_id.to_bytes(4, "big")
    if header.startswith(HEADER) and len(header) == HEADER_BYTES and header[68:72] != own:
        raise foreign
    with opening(path):
        if _probe(path, pending=pending) != application_id:
            raise foreign


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Raises Failure that names the file, where the disk or the file keeps it from being opened."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError):
        raise Damaged(f"The database {path} is damaged. {DAMAGED}") from None
    except ROOMLESS as error:
        raise Unopened(f"The database {path} cannot be opened: {error}. {_permissions(path)}") from None
    except apsw.ReadOnlyError as error:
        raise Failure(f"The database {path} cannot be opened: {error}. {_permissions(path)}") from None
    except apsw.Error as error:
        raise Failure(f"The database {path} cannot be opened: {error}.") from None


def _permissions(path: str | Path) -> str:
    """Whose the file or its folder is where this user may not write there, and the remedy."""
    denied = permissions.denial(Path(path), write=True)
    return str(denied or "Its disk must have room, and let files be made beside it.")


def _probe(path: Path, *, pending: bool) -> int:
    """The application id of a database that is sound; `pending`: there is a WAL, which a look leaves as it is."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(5000)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(pending))
        size = path.stat().st_size
        whole = connection.pragma("page_count") * connection.pragma("page_size")
        if size < whole and not pending:
            raise Damaged(f"The database {path} is cut short: {size} of {whole} bytes. {DAMAGED}")
        if size <= QUICK_CHECK_BYTES and connection.execute("PRAGMA quick_check(1)").get != "ok":
            raise Damaged(f"The database {path} is damaged. {DAMAGED}")
        return int(connection.pragma("application_id"))
    finally:
        connection.close()


def identity(path: str | Path) -> tuple[int, int] | None:
    """What tells the file at the path from every other one, None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - before every unit, and half as dear as a Path's
    except OSError:
        return None
    return status.st_dev, status.st_ino


def driver_error(error: BaseException) -> apsw.Error | None:
    """The error of SQLite behind one of Peewee's, None where there is none."""
    if isinstance(error, apsw.Error):
        return error
    inner = getattr(error, "orig", None)
    return inner if isinstance(inner, apsw.Error) else None


def refused_by_query_only(error: BaseException) -> bool:
    """Whether a reading unit tried to write, which is a mistake of ours and not of the disk."""
    inner = driver_error(error)
    return isinstance(inner, apsw.ReadOnlyError) and inner.extendedresult == apsw.SQLITE_READONLY  # type: ignore[attr-defined]


def translate(error: BaseException, file: str | Path) -> BaseException:
    """Unavailable for what a lock or the disk did, a Failure for a damaged file, Peewee's error for a constraint."""
    inner = driver_error(error)
    if isinstance(inner, (*ROOMLESS, *PASSING)):
        cause = next(
            (
                words.format(file=file, error=inner, permissions=_permissions(file))
                for kind, words in CAUSES.items()
                if isinstance(inner, kind)
            ),
            None,
        )
        return (Roomless if isinstance(inner, ROOMLESS) else Unavailable)(here=cause)
    if isinstance(inner, (apsw.CorruptError, apsw.NotADBError)):
        return Damaged("The database is damaged. Run: musicsvc db check")
    if isinstance(error, apsw.ConstraintError):
        return peewee.IntegrityError(error, str(error))
    return error


def database_bytes(url: str) -> int | None:
    """Return the size of the database file; None for a database on a server."""
    path = path_of(url)
    return path.stat().st_size if path else None


def wal_bytes(url: str) -> int | None:
    """Return the size of the write-ahead log; None for a database on a server."""
    path = path_of(url)
    if path is None:
        return None
    wal = path.with_name(f"{path.name}-wal")
    return wal.stat().st_size if wal.exists() else 0
