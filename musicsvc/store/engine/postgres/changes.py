"""Detect commits to a PostgreSQL database: those of this machine at once, those of other machines within a second.

Each writing transaction increments the version numbers of its tables in `table_version`. A thread reads these numbers
four times a second. In addition, the processes of a machine share a memory-mapped file of 8-byte words: one for all
tables, then one for each table. After COMMIT, and before its caller gets the result, a writer sets the words of its
tables to a new random number. Readers see it without a query. If a writer is killed in between, its caller got no
result, and the thread detects the commit.

The queries of the thread also show whether the server responds at all. While it does not, all waits for it end at once.
"""

import fcntl
import logging
import mmap
import os
import tempfile
import threading
import time
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from psycopg.errors import ConnectionTimeout

from musicsvc.errors import Unavailable
from musicsvc.store.engine.postgres.database import ERRORS, PostgresDatabase, driver_error
from musicsvc.store.engine.postgres.waiting import Limits, NoResponse, limited

log = logging.getLogger("musicsvc")
MEMORY = Path("/dev/shm")  # noqa: S108 - files there never wait for a disk
WORD = 8
SIZE = 512 * WORD
POLL_SECONDS = 0.25
MAX_AGE = 0.9  # seconds after which what the thread has read is not trusted
RESPONSE_SECONDS = 2.0  # the thread's connection is replaced if the server does not respond in this time
SILENT_SECONDS = 5.0  # a server that has sent the thread nothing for so long does not respond
IDENTITY = """
    SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()) FROM pg_control_system()
"""
# The snapshot changes with each transaction that writes anything, counters and other programs' writes included.
NUMBERS = """
    SELECT '', pg_current_snapshot()::text
    UNION ALL SELECT ' ', pg_postmaster_start_time()::text
    UNION ALL SELECT name, sum(number)::text FROM table_version GROUP BY name
"""


def default_folder() -> Path:
    """Return the folder for the shared files: `/dev/shm`, which is in memory, or the folder for temporary files."""
    if os.access(MEMORY, os.W_OK | os.X_OK):
        return MEMORY
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # no folder is writable: commits are detected without a file
        return MEMORY


def marks_file(folder: Path, connection: Any) -> Path:
    """Return the path of the memory-mapped file that this user's processes share for the database."""
    ((cluster, database),) = connection.execute(IDENTITY)
    return folder / f"musicsvc-changes-{os.geteuid()}-{cluster}-{database}"


def mark(file: Path, tables: Iterable[str], number: int) -> None:
    """Write `number` into the words of these tables, then into the first word. Do nothing if the file is missing."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        for position in (*map(_position, tables), 0):
            os.pwrite(descriptor, number.to_bytes(WORD), position)
    finally:
        os.close(descriptor)


def _position(table: str) -> int:
    """Return the offset of the table's word. If two tables share a word, a change of one also shows for the other."""
    return WORD * (1 + crc32(table.encode()) % (SIZE // WORD - 1))


class Marks:
    """The memory-mapped file, opened to read it. The last process that closes the file deletes it."""

    def __init__(self, path: Path) -> None:
        """Create or open the file. Raises OSError if that fails or the file belongs to another user."""
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            if os.fstat(self._descriptor).st_uid != os.geteuid():
                raise PermissionError(f"{path} belongs to another user")
            os.posix_fallocate(self._descriptor, 0, SIZE)
            self.words = mmap.mmap(self._descriptor, SIZE, access=mmap.ACCESS_READ)
        except OSError:
            os.close(self._descriptor)
            raise

    def in_place(self) -> bool:
        """Return False if the file was removed or replaced, so that writers no longer find it."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def close(self) -> None:
        """Close the file. Remove it if no other process reads it."""
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.in_place():
                self._path.unlink()
        os.close(self._descriptor)


class Seen(NamedTuple):
    """The version numbers that the thread read last. `began`: when it began to read them.

    `opened` changes with each connection lost, restart of the server and file opened: all tables may have changed.
    """

    began: float
    number: int  # grows with each difference
    opened: Hashable
    versions: Mapping[str, str]
    tables: frozenset[str]
    marks: Marks


class ChangeWatch:
    """Detects commits, so that caches can drop old results. `changes` and `check` start its thread."""

    def __init__(self, database: PostgresDatabase, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._thread = threading.Thread(target=self._run, name="store-watch", daemon=True)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._seen: Seen | None = None
        self._marks: Marks | None = None
        self._files = 0  # opened so far
        self._asked: float | None = None  # since when the server has not responded

    def responds(self) -> bool:
        """Return False if the server has not responded to the thread for some seconds."""
        asked = self._asked
        return asked is None or time.monotonic() - asked < SILENT_SECONDS

    def check(self) -> bool:
        """Do the same as `responds`, for a thread that waits. From then on the server is asked."""
        self._start()
        return self.responds()

    def changes(self) -> Hashable | None:
        """Return a value that differs after each commit, or None if the value is not known (or is a second old)."""
        seen = self._seen
        if seen is None or time.monotonic() - seen.began > MAX_AGE:
            self._start()
            return None
        return seen.number, seen.marks.words[:WORD]

    def table_versions(self) -> Mapping[str, Hashable]:
        """Return a value for each table that differs after each commit that changed the table."""
        seen = self._seen
        if seen is None:
            return {}
        words = seen.marks.words[:]
        places = ((table, _position(table)) for table in seen.tables)
        return {table: (seen.opened, seen.versions.get(table), words[place : place + WORD]) for table, place in places}

    def others(self) -> Hashable:
        """Return a value that differs after every commit, as the thread read it last."""
        seen = self._seen
        return object() if seen is None else (seen.opened, seen.versions[""])

    def close(self) -> None:
        with self._lock:
            self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _start(self) -> None:
        with self._lock:
            if self._thread.ident is None and not self._closing.is_set():
                self._thread.start()

    def _run(self) -> None:
        self._database.be_urgent()
        while True:
            began = time.monotonic()
            self._asked = self._asked or began
            try:
                with limited(Limits(began + RESPONSE_SECONDS)):
                    self._read()
            except (*ERRORS, OSError, Unavailable) as error:
                if not self._shows_silence(error):
                    self._asked = None  # it has responded, if only with an error
            except Exception:
                self._asked = None  # nothing is known of the server; without this thread it would count as silent
                log.exception("unhandled exception while looking for changes of PostgreSQL")
            else:
                self._asked = None
            with suppress(*ERRORS):
                self._database.close()
            if self._closing.wait(POLL_SECONDS):
                break
        if self._marks is not None:
            self._marks.close()

    def _shows_silence(self, error: Exception) -> bool:
        """Return whether the server may be silent: urgent work alone would soon give the reserved connection back."""
        if isinstance(error, Unavailable):
            return self._database.connections.has_reserve
        return isinstance(driver_error(error), NoResponse | ConnectionTimeout)

    def _read(self) -> None:
        self._database.connect(reuse_if_open=True)
        connection: Any = self._database.connection()
        if self._marks is None or not self._marks.in_place():
            self._marks = self._reopened(marks_file(self._folder, connection))
            self._files += 1
        began, lost = time.monotonic(), self._database.connections.lost
        versions = {str(name): str(number) for name, number in connection.execute(NUMBERS)}
        opened = lost, versions.pop(" "), self._files
        seen, number = self._seen, 0
        if seen is not None:
            number = seen.number + ((seen.opened, seen.versions) != (opened, versions))
        self._seen = Seen(began, number, opened, versions, self._database.tables.names, self._marks)

    def _reopened(self, file: Path) -> Marks:
        """Open the file. If another process deleted the file at the same time, open it again."""
        if self._marks is not None:
            self._marks.close()
            self._marks = None
        while not (marks := Marks(file)).in_place():
            marks.close()
        return marks
