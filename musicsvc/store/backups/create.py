"""Backups of a SQLite database beside its running server: one snapshot, proved before it bears a backup's name."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from musicsvc.errors import Damaged, Failure, Unavailable
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.backups import verify
from musicsvc.store.engine.url import path_of

if TYPE_CHECKING:
    from pathlib import Path

    from musicsvc.store.backups.verify import Facts, Told

# Each slice is on the disk before the next: a commit of the server never waits for more than one of them.
SLICE_PAGES = 256
PAUSE_SECONDS = 0.002
BUSY_MILLISECONDS = 5000
MEGABYTE = 1_000_000
POSTGRES = (
    "The database is on PostgreSQL, whose own tools keep it: pg_dump --format=custom makes a backup,"
    " pg_restore puts it back."
)


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that is in its place; `size` in bytes."""

    file: Path
    size: int
    facts: Facts


def database_file(url: str) -> Path:
    """The file of the store. Raises Failure where it has none."""
    path = path_of(url)
    if path is None:
        raise Failure(POSTGRES)
    return path


def make(path: Path, target: Path, told: Told | None = None) -> Backup:
    """Back up the database at `path` to the file `target`, which must not be there; readable by its owner alone.

    Writers go on meanwhile and never wait for it. Whoever calls uses the database himself (occupancy.py).
    Raises Failure, and leaves nothing behind.
    """
    with backup_folder.draft(target) as draft:
        try:
            copied = _copy(path, draft.path, told)
        except OSError as error:
            raise Failure(f"The backup {target} cannot be written: {error.strerror}.") from None
        except apsw.Error as error:
            raise _told(error, path, target) from None
        found = _proved(path, target, draft.path, told)
        if found != copied:
            raise Failure(f"The backup {target} does not hold what was copied, and was not kept. Check the disk.")
        size = draft.path.stat().st_size
        draft.place()
    return Backup(target, size, found)


def _proved(path: Path, target: Path, draft: Path, told: Told | None) -> Facts:
    """What the draft holds. Raises Failure that names what is at fault, which is not the draft: it goes."""
    try:
        return verify.prove(draft, told)
    except verify.Dangling:
        said = f"The database {path} is damaged, and no backup was made: a row points at nothing."
        raise Failure(f"{said} Run: musicsvc db check") from None
    except Damaged as damaged:
        reason = damaged.message.removeprefix(f"{draft} ")
        said = f"The backup {target} was not kept: the copy {reason} Check the disk, and run: musicsvc db check"
        raise Failure(said) from None


def _copy(path: Path, draft: Path, told: Told | None) -> Facts:
    """Copy one snapshot into the draft, which is on the disk afterwards; what the snapshot holds."""
    # Never opened as a plain file: closing that would take the locks of every connection of this process with it.
    source = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        source.set_busy_timeout(BUSY_MILLISECONDS)
        verify.listen(source, told)
        source.execute("PRAGMA query_only = ON")
        # As long as it lasts the copy sees one state; without it every commit would have it begin anew.
        source.execute("BEGIN")
        found = verify.facts(source)
        _require_room(draft.parent, int(source.pragma("page_count")) * int(source.pragma("page_size")))
        _copy_pages(source, draft, told)
        return found
    finally:
        source.close()


def _copy_pages(source: apsw.Connection, draft: Path, told: Told | None) -> None:
    target = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)
    descriptor = os.open(draft, os.O_RDWR)
    try:
        target.execute("PRAGMA synchronous = OFF")  # what is half done is thrown away, and synced by ourselves
        target.pragma("journal_mode", "off")
        with target.backup("main", source, "main") as copying:
            while not copying.step(SLICE_PAGES):
                if told is not None:
                    told(copying.page_count - copying.remaining, copying.page_count)
                os.fsync(descriptor)
                time.sleep(PAUSE_SECONDS)
        target.pragma("journal_mode", "delete")  # one file, which any tool opens without a WAL beside it
    finally:
        target.close()
        os.fsync(descriptor)
        os.close(descriptor)


def _require_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Failure(
            f"There is no room for a backup in {folder}: it needs {needed / MEGABYTE:,.1f} MB, and"
            f" {free / MEGABYTE:,.1f} MB are free."
        )


def _told(error: apsw.Error, path: Path, target: Path) -> Exception:
    """What a user is told of an error of SQLite on the way."""
    if isinstance(error, apsw.FullError):
        return Failure(f"The disk of {target} is full; the backup was not kept.")
    if isinstance(error, apsw.IOError):
        return Failure(f"The backup {target} cannot be written: {error}. It was not kept.")
    if isinstance(error, apsw.BusyError):
        return Unavailable("The database is locked by another program. Try again shortly.")
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return Failure(f"The database {path} is damaged, and no backup was made. Run: musicsvc db check")
    return Failure(f"The backup {target} cannot be made: {error}.")
