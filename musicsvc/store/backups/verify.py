"""Verify a backup: check the integrity of a database file, and count its rows."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import apsw

from musicsvc.errors import Damaged, Failure
from musicsvc.store.engine.sqlite.files import APPLICATION_ID, HEADER, HEADER_BYTES, Foreign
from musicsvc.store.schema.history import History
from musicsvc.store.schema.schema import HISTORY

STEPS = 100_000  # instructions of SQLite's virtual machine between two calls of on_progress
OnProgress = Callable[[float, float], None]  # takes the amount done and the total; may raise to stop the work


@dataclass(frozen=True, slots=True)
class Facts:
    """The number of rows of each table, and the applied migrations."""

    counts: dict[str, int]
    migrations: History

    @property
    def rows(self) -> int:
        return sum(self.counts.values())


class DanglingRows(Damaged):
    """The file has rows that refer to missing rows. Unlike other damage, this is not a sign of a faulty disk."""


def read_facts(connection: apsw.Connection) -> Facts:
    kinds = {str(row[1]): row[2] for row in connection.execute("PRAGMA main.table_list")}
    # The rows of a virtual table are counted in its shadow tables.
    names = sorted(name for name, kind in kinds.items() if kind in {"table", "shadow"} and name != "sqlite_schema")
    counts = {name: int(connection.execute(f'SELECT count(*) FROM "{name}"').get) for name in names}  # noqa: S608 - names from the schema
    history = f"SELECT name, oldest_program FROM {HISTORY} ORDER BY name"  # noqa: S608 - a constant
    rows = connection.execute(history).fetchall() if HISTORY in kinds else []
    return Facts(counts, {str(name): str(oldest_program) for name, oldest_program in rows})


def check(file: Path, on_progress: OnProgress | None = None) -> Facts:
    """Check a database file that is not in use, without changing it. Return its row counts and migrations.

    Raises Damaged, Foreign for a file of another program, or another Failure for an unreadable file.
    """
    if on_progress is not None:
        on_progress(1, 1)
    check_header(file)
    try:
        with closing(open_immutable(file)) as connection:
            call_regularly(connection, on_progress)
            return _check(connection, file)
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
        raise Damaged(f"{file} is damaged.") from None
    except (apsw.IOError, apsw.CantOpenError) as error:
        raise Failure(f"{file} cannot be read: {error}.") from None


def open_immutable(file: Path) -> apsw.Connection:
    """Open a database file that is not in use, for reading, without creating a WAL or lock files."""
    return apsw.Connection(address(file), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def address(file: Path) -> str:
    """Return a SQLite URI that opens the file without locks. Nothing may change the file meanwhile."""
    return f"file:{quote(str(file))}?immutable=1"


def check_header(file: Path) -> None:
    """Check only the header and the length of the file. Raises Damaged, Foreign or another Failure."""
    try:
        with file.open("rb") as opened:
            header = opened.read(HEADER_BYTES)
        size = file.stat().st_size
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from None
    if not header:
        raise Damaged(f"{file} is empty (0 bytes).")
    if not header.startswith(HEADER):
        raise Damaged(f"{file} is not a SQLite database.")
    if len(header) == HEADER_BYTES and int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise Foreign(f"{file} belongs to another program.")
    page = int.from_bytes(header[16:18], "big")
    expected = int.from_bytes(header[28:32], "big") * (65_536 if page == 1 else page)
    if size < max(expected, HEADER_BYTES):
        raise Damaged(f"{file} is cut short: {size} of {expected} bytes.")


def call_regularly(connection: apsw.Connection, on_progress: OnProgress | None) -> None:
    """Call `on_progress` regularly while statements run. An exception in `on_progress` stops the running statement."""
    if on_progress is not None:

        def go_on() -> bool:
            on_progress(1, 1)
            return False

        connection.set_progress_handler(go_on, STEPS)


def _check(connection: apsw.Connection, file: Path) -> Facts:
    problem = str(connection.pragma("integrity_check", 1))
    if problem != "ok":
        raise Damaged(f"{file} is damaged: {problem.splitlines()[-1]}.")
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise DanglingRows(f"{file} is damaged: a row refers to a missing row.")
    return read_facts(connection)
