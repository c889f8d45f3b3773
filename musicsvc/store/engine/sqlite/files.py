"""Create SQLite files, check them before they are opened, connect to them, and translate SQLite's errors."""

import errno
import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import peewee
from peewee import __exception_wrapper__ as peewee_errors  # type: ignore[attr-defined]  # missing in the stubs
from playhouse.apsw_ext import APSWDatabase

from musicsvc import descriptors, permissions
from musicsvc.errors import Damaged, Failure, MissingReference, NoDatabase, Unavailable
from musicsvc.store.engine.bulk import NOTED, note_row
from musicsvc.store.engine.tables import Noting, Tables, note
from musicsvc.store.engine.url import path_of

SAMPLE_BYTES = 64 * 1024  # more than SQLite needs for the changes of a request
APPLICATION_ID = 0x4D535643  # "MSVC"
LOG_ID = 0x4D53564C  # "MSVL", an activity log
HEADER = b"SQLite format 3\x00"
HEADER_BYTES = 100
ERRORS = (peewee.PeeweeException, apsw.Error)  # Peewee does not wrap all errors of the driver
QUICK_CHECK_BYTES = 8 * 1024 * 1024  # checked in 20 ms, whenever a process opens the file
DAMAGED = "Restore a backup (musicsvc db restore FILE), or move the file away and run: musicsvc init"
# On a full disk, SQLite may also report a file that cannot be opened or written.
DISK_FAULTS = (apsw.FullError, apsw.IOError, apsw.CantOpenError)
TRANSIENT = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.ReadOnlyError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.ProtocolError,
)
# Messages for the operator, with the file and SQLite's message; API clients do not see them.
CAUSES: dict[type[apsw.Error], str] = {
    apsw.FullError: "The disk of {file} is full. Make room on it, then try again.",
    apsw.IOError: "{file} cannot be read or written: {error}. Its disk may be full or failing.",
    apsw.CantOpenError: "{file} cannot be opened. {permissions}",
    apsw.ReadOnlyError: "{file} cannot be written. {permissions}",
    apsw.BusyError: "{file} is locked by another program. Try again shortly.",
    apsw.LockedError: "{file} is locked by another program. Try again shortly.",
}
BUSY_SECONDS = 5.0
# Each table, with a table whose deletes change it. Shadow tables are parts of virtual tables.
TABLES = """
    SELECT t.name, CASE WHEN f.on_delete NOT IN ('NO ACTION', 'RESTRICT') THEN f."table" END
    FROM pragma_table_list t LEFT JOIN pragma_foreign_key_list(t.name) f
    WHERE t.schema = 'main' AND t.type <> 'shadow' AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~'
"""
MAPPED = 1 << 31  # bytes; SQLite maps no more. Pages that are not mapped are copied, which costs figures a tenth.
PRAGMAS: dict[str, object] = {
    "foreign_keys": "ON",
    "synchronous": "FULL",
    "mmap_size": MAPPED,
    "secure_delete": "ON",  # deleted rows are overwritten; what this leaves is found by `scrubbing.py`
}


class DiskFault(Unavailable):
    """The disk cannot be read or written; it may be full."""


class CannotOpen(Failure):
    """The database cannot be opened because of a disk fault."""


class Foreign(Failure):
    """The database file belongs to another program."""


def create(path: Path, application_id: int = APPLICATION_ID) -> None:
    """Create an empty database file and its folder, readable only by their owner. Do nothing if the file exists.

    Raises Unavailable if the disk has no room for it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists():
        return
    # Created under another name and then linked, so that a killed process leaves no partial database.
    with tempfile.TemporaryDirectory(prefix=".init-", dir=path.parent) as folder:
        draft = Path(folder) / path.name
        with descriptors.opened(draft, os.O_CREAT) as made:
            descriptors.hand_over(made, path.parent, path.parent)
        try:
            with connected(draft) as connection:
                connection.pragma("application_id", application_id)
                connection.pragma("journal_mode", "wal")
        except apsw.Error as error:
            raise translate(error, path) from error
        with suppress(FileExistsError):  # another process was first
            rename_durably(draft, path)


def connected(path: Path) -> AbstractContextManager[apsw.Connection]:
    """Open a connection for a `with` block."""
    return closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE))


def rename_durably(draft: Path, path: Path) -> None:
    """Hard-link `path` to `draft` or, if links fail, rename `draft`. Sync the folder. Raises FileExistsError."""
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
    """Sync the folder to disk, so that created and renamed files survive a power failure."""
    try:
        descriptors.sync(folder)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EBADF, errno.ENOTSUP}:  # not supported by some network file systems
            raise


def examine(path: Path, application_id: int = APPLICATION_ID) -> None:
    """Check that the file is an intact database. Raises Damaged, Foreign (wrong application id) or another Failure."""
    foreign = Foreign(f"{path} belongs to another program. Point database_url or MUSICSVC_DATA_DIR elsewhere.")
    if path.exists() and not (path.is_file() or path.is_dir()):  # a device such as /dev/null, which root could rename
        raise foreign
    try:
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
    except FileNotFoundError:
        raise _missing(path) from None
    except PermissionError as error:
        raise Failure(f"The database {path} cannot be opened: {error.strerror}. {_denial(path)}") from None
    except OSError as error:
        raise Failure(f"The database {path} cannot be opened: {error.strerror}.") from None
    if not header:
        raise Damaged(f"The database {path} is empty (0 bytes). {DAMAGED}")
    pending = _has_wal(path)
    # A power failure during a checkpoint can leave a torn first page, which SQLite restores from the WAL.
    if not (header.startswith(HEADER) or pending):
        raise Damaged(f"{path} is not a SQLite database. {DAMAGED}")
    own = application_id.to_bytes(4, "big")
    if header.startswith(HEADER) and len(header) == HEADER_BYTES and header[68:72] != own:
        raise foreign
    with translated_open_errors(path):
        if _probe(path, pending=pending) != application_id:
            raise foreign


def _missing(path: Path) -> Failure:
    return NoDatabase(f"There is no database at {path}. Run: musicsvc init")


@contextmanager
def translated_open_errors(path: Path) -> Iterator[None]:
    """Raise Failure instead of SQLite's errors inside the `with` block, which opens the file at `path`."""
    try:
        yield
    except FileNotFoundError:  # removed while it was opened
        raise _missing(path) from None
    except (apsw.CorruptError, apsw.NotADBError):
        raise Damaged(f"The database {path} is damaged. {DAMAGED}") from None
    except DISK_FAULTS as error:
        raise CannotOpen(f"The database {path} cannot be opened: {error}. {_denial(path)}") from None
    except apsw.ReadOnlyError as error:
        raise Failure(f"The database {path} cannot be opened: {error}. {_denial(path)}") from None
    except apsw.Error as error:
        raise Failure(f"The database {path} cannot be opened: {error}.") from None


def _denial(path: str | Path) -> str:
    """Return text for an error message: why this user cannot write the file or, if unknown, what writing requires."""
    denials = (permissions.denial(Path(f"{path}{suffix}"), write=True) for suffix in ("", "-wal", "-shm"))
    denied = next(filter(None, denials), None)
    return str(
        denied or "Its disk must have free space and inodes, its folder be writable, its path shorter than 480 bytes."
    )


def write_fault(path: Path) -> str:
    """Return why the database cannot be written, or an empty text. Writes some bytes beside it, to no disk if possible.

    The file itself is not opened: closing it would release SQLite's locks.
    """
    read_only = partial(CAUSES[apsw.ReadOnlyError].format, file=path)
    if not os.access(path, os.W_OK):
        return read_only(permissions=_denial(path))
    folder = Path(os.path.realpath(path)).parent
    try:
        # Random, since a file system may store zeros without using disk space.
        with tempfile.TemporaryFile(dir=folder, buffering=0) as sample:
            full = sample.write(os.urandom(SAMPLE_BYTES)) < SAMPLE_BYTES
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} and not _lacks_inodes_only(folder)
        if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}:
            return read_only(permissions=_denial(path))
    return CAUSES[apsw.FullError].format(file=path) if full else ""


def _lacks_inodes_only(folder: Path) -> bool:
    """Return True if no file can be created on the disk, but those of an open database can be written."""
    status = os.statvfs(folder)
    return bool(status.f_files and not status.f_favail and status.f_bavail * status.f_frsize >= SAMPLE_BYTES)


def _has_wal(path: Path) -> bool:
    """Return True if the database has a write-ahead log (WAL) that is not empty."""
    return size(path.with_name(path.name + "-wal")) > 0


def _probe(path: Path, *, pending: bool) -> int:
    """Return the database's application id. Raises Damaged. `pending`: whether its write-ahead log has content."""
    with connected(path) as connection:
        connection.set_busy_timeout(5000)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(pending))
        expected = connection.pragma("page_count") * connection.pragma("page_size")
        # Another process may have begun to write since `pending` was read: its pages count, and are in the WAL.
        pending = pending or _has_wal(path)
        found = path.stat().st_size
        if found < expected and not pending:
            raise Damaged(f"The database {path} is cut short: {found} of {expected} bytes. {DAMAGED}")
        if found <= QUICK_CHECK_BYTES and connection.pragma("quick_check", 1) != "ok":
            raise Damaged(f"The database {path} is damaged. {DAMAGED}")
        return int(connection.pragma("application_id"))


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return the device and inode numbers of the file, or None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 - runs before every unit, and takes half the time of Path.stat
    except OSError:
        return None
    return status.st_dev, status.st_ino


class NotingCursor(Noting, apsw.Cursor):
    """A cursor that records the text of each statement, to find the tables that a transaction reads and changes."""


class SqliteDatabase(APSWDatabase):
    """Peewee's SQLite database on apsw, with one connection per thread."""

    def __init__(self, path: Path, pragmas: dict[str, object], *, statements: int = 100, log: bool = False) -> None:
        """Prepare for connections to a file. `statements`: how many prepared statements each connection keeps.

        `log`: it is an activity log, of whose tables no versions are kept.
        """
        flags = apsw.SQLITE_OPEN_READWRITE
        # IMMEDIATE for migrations: a transaction that upgrades from reading to writing fails instead of waiting.
        super().__init__(
            str(path),
            pragmas={**PRAGMAS, **pragmas},
            timeout=BUSY_SECONDS,
            lock_type="IMMEDIATE",
            flags=flags,
            statementcachesize=statements,
        )
        self._connections: list[apsw.Connection] = []
        self._identity = identity(path)
        self._tables = Tables(()) if log else None
        self._log = log
        self.erasing = False  # a transaction erases rows (`sql.erase_for_good`)

    @property
    def tables(self) -> Tables:
        """The tables of the database, read once. Before the table `table_version` exists, they are read every time."""
        if self._tables is None or not (self._tables.versioned or self._log):
            self._tables = Tables(self.connection().execute(TABLES))
        return self._tables

    def require_in_place(self) -> None:
        """Raise Unavailable if the database file was moved or replaced while open, because writes would be lost."""
        if identity(self.database) != self._identity:
            if denied := permissions.denial(Path(self.database)):
                raise Unavailable(here=CAUSES[apsw.CantOpenError].format(file=self.database, permissions=denied))
            raise Unavailable(here=f"{self.database} was moved, replaced or deleted. Put it back and restart.")

    def _connect(self) -> apsw.Connection:
        connection: apsw.Connection = super()._connect()
        connection.convert_binding = _convert
        # Otherwise SQLite prepares a join with parameters again at each execution, to look at their values.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.cursor_factory = NotingCursor
        connection.create_scalar_function(NOTED, note_row)
        self._connections.append(connection)
        return connection

    def execute_sql(self, sql: str, params: Sequence[Any] | None = None) -> apsw.Cursor:
        """Run a statement. Raises Unavailable if SQLite has rolled back the transaction after an earlier error.

        Peewee's method and NotingCursor are not used, because they take longer than a short statement.
        """
        connection: apsw.Connection = self.connection()
        if self.in_transaction() and not connection.in_transaction:
            raise Unavailable
        if self.query_hooks:
            cursor: apsw.Cursor = super().execute_sql(sql, params)
            return cursor
        note(sql)
        try:
            return apsw.Cursor(connection).execute(sql, params or ())
        except apsw.Error:
            with peewee_errors:
                raise

    def integers(self, values: Iterable[int]) -> Any:
        """Return a parameter for `carray(?)`. `values` must not be empty."""
        return apsw.carray(array("q", values))

    def close_all(self) -> None:
        """Close the connections of all threads. No thread may be using its connection."""
        while self._connections:
            close(self._connections.pop())


def close(connection: apsw.Connection) -> None:
    """Close a connection and ignore errors. If the WAL cannot be checkpointed now, the next start checkpoints it."""
    with suppress(apsw.Error):
        connection.close()


def _convert(_cursor: apsw.Cursor, _index: int, value: object) -> str:
    """Return a datetime parameter as text, because apsw accepts no datetime. Raises TypeError for any other type."""
    if isinstance(value, datetime):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be stored in the database")


def driver_error(error: BaseException) -> apsw.Error | None:
    """Return `error` if it is an apsw error, or the apsw error that Peewee wrapped in it, else None."""
    if isinstance(error, apsw.Error):
        return error
    inner = getattr(error, "orig", None)
    return inner if isinstance(inner, apsw.Error) else None


def refused_by_query_only(error: BaseException) -> bool:
    """Return True if a read-only transaction tried to write, which is a programming error and not a disk fault."""
    inner = driver_error(error)
    return isinstance(inner, apsw.ReadOnlyError) and inner.extendedresult == apsw.SQLITE_READONLY  # type: ignore[attr-defined]


def translate(error: BaseException, file: str | Path) -> BaseException:
    """Return Unavailable, Damaged, MissingReference or Peewee's IntegrityError for an error of SQLite, else `error`."""
    inner = driver_error(error)
    if getattr(inner, "extendedresult", None) == apsw.SQLITE_CONSTRAINT_FOREIGNKEY:
        return MissingReference()
    if isinstance(inner, (*DISK_FAULTS, *TRANSIENT)):
        cause = next(
            (
                words.format(file=file, error=inner, permissions=_denial(file))
                for kind, words in CAUSES.items()
                if isinstance(inner, kind)
            ),
            None,
        )
        return (DiskFault if isinstance(inner, DISK_FAULTS) else Unavailable)(here=cause)
    if isinstance(inner, (apsw.CorruptError, apsw.NotADBError)):
        return Damaged("The database is damaged. Run: musicsvc db check")
    if isinstance(error, apsw.ConstraintError):
        return peewee.IntegrityError(error, str(error))
    return error


def database_bytes(url: str) -> int | None:
    """Return the size of the SQLite file in bytes, or None for PostgreSQL."""
    path = path_of(url)
    return path.stat().st_size if path else None


def wal_bytes(url: str) -> int | None:
    """Return the size of SQLite's write-ahead log in bytes, or None for PostgreSQL."""
    path = path_of(url)
    if path is None:
        return None
    return size(path.with_name(f"{path.name}-wal"))


def size(path: Path) -> int:
    """Return the size of the file in bytes, or 0 if it does not exist. Another process may remove it at any moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
