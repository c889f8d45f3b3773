"""What proves a backup: opened as a database it is whole, and holds the rows of the snapshot that it was made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import apsw

from musicsvc.errors import Damaged, Failure
from musicsvc.store.engine.sqlite.files import APPLICATION_ID, HEADER, HEADER_BYTES, Foreign
from musicsvc.store.schema.schema import HISTORY, known

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 100_000  # of SQLite's machine, between two looks at whether to go on
Told = Callable[[float, float], None]  # is given how much of how much is done, again and again; may raise to end it


@dataclass(frozen=True, slots=True)
class Facts:
    """What a database holds: rows by table, and the migrations that it has had."""

    counts: dict[str, int]
    migrations: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(self.counts.values())

    @property
    def newer(self) -> bool:
        """Whether a newer program made it."""
        return bool(set(self.migrations) - set(known()))

    @property
    def older(self) -> bool:
        """Whether migrations are missing."""
        return bool(set(known()) - set(self.migrations))


class Dangling(Damaged):
    """A database whose pages are whole, and whose rows are not: no disk did that on the way."""


def facts(connection: apsw.Connection) -> Facts:
    """Count what the connection sees."""
    kinds = {str(row[1]): row[2] for row in connection.execute("PRAGMA main.table_list")}
    # A virtual table is counted by the tables behind it.
    names = sorted(name for name, kind in kinds.items() if kind in {"table", "shadow"} and name != "sqlite_schema")
    counts = {name: int(connection.execute(f'SELECT count(*) FROM "{name}"').get) for name in names}  # noqa: S608
    rows = connection.execute(f"SELECT name FROM {HISTORY} ORDER BY name").fetchall() if HISTORY in kinds else []  # noqa: S608
    return Facts(counts, tuple(str(name) for (name,) in rows))


def prove(file: Path, told: Told | None = None) -> Facts:
    """What the database in the file holds. The file is opened as one that nobody changes, and is left as it is.

    Raises Damaged or Foreign that names the file.
    """
    if told is not None:
        told(1, 1)
    glance(file)
    try:
        connection = opened(file)
        try:
            listen(connection, told)
            return _sound(connection, file)
        finally:
            connection.close()
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
        raise Damaged(f"{file} is damaged.") from None
    except (apsw.IOError, apsw.CantOpenError) as error:
        raise Failure(f"{file} cannot be read: {error}.") from None


def opened(file: Path) -> apsw.Connection:
    """A connection to a file that nobody changes, which leaves no trace beside it."""
    return apsw.Connection(address(file), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def address(file: Path) -> str:
    """The file as SQLite is told that nobody changes it."""
    return f"file:{quote(str(file))}?immutable=1"


def glance(file: Path) -> None:
    """Look at the first bytes and the length alone. Raises Damaged or Foreign where it is no whole database of ours."""
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
    whole = int.from_bytes(header[28:32], "big") * (65_536 if page == 1 else page)
    if size < max(whole, HEADER_BYTES):
        raise Damaged(f"{file} is cut short: {size} of {whole} bytes.")


def listen(connection: apsw.Connection, told: Told | None) -> None:
    """Let what the connection does be ended by `told`."""
    if told is not None:

        def go_on() -> bool:
            told(1, 1)
            return False

        connection.set_progress_handler(go_on, STEPS)


def _sound(connection: apsw.Connection, file: Path) -> Facts:
    problem = str(connection.execute("PRAGMA integrity_check(1)").get)
    if problem != "ok":
        raise Damaged(f"{file} is damaged: {problem.splitlines()[-1]}.")
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise Dangling(f"{file} is damaged: a row points at nothing.")
    return facts(connection)
