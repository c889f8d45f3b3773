"""Create a backup of a SQLite database, which may be in use, and verify it. Replace the content of another."""

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import apsw

from musicsvc import descriptors
from musicsvc.errors import Damaged, Failure, Unavailable
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.backups import verify
from musicsvc.store.backups.folder import Draft
from musicsvc.store.backups.verify import Facts, OnProgress
from musicsvc.store.catalog import changes
from musicsvc.store.engine.sqlite.files import connected
from musicsvc.store.engine.url import path_of
from musicsvc.store.schema import history

# Each slice is synced before the next is copied, so a commit of the server never waits for more than one slice.
SLICE_PAGES = 256
PAUSE_SECONDS = 0.002
BUSY_MILLISECONDS = 5000
MEGABYTE = 1_000_000
POSTGRES = (
    "The database is on PostgreSQL. Use its own tools: pg_dump --format=custom creates a backup,"
    " pg_restore restores it."
)


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished backup. `size` is in bytes, `facts` are its row counts and migrations."""

    file: Path
    size: int
    facts: Facts


def database_file(url: str) -> Path:
    """Return the path of a SQLite database. Raises Failure for a PostgreSQL URL."""
    path = path_of(url)
    if path is None:
        raise Failure(POSTGRES)
    return path


def create(path: Path, target: Path, on_progress: OnProgress | None = None) -> Backup:
    """Copy the database at `path` to the new file `target`, which only its owner can read. No file is left on failure.

    The database stays writable. The caller must hold the database's shared lock (`file_locks.use`).
    """
    with backup_folder.draft(target, path) as draft:
        found = copy(path, draft, on_progress)
        size = draft.path.stat().st_size
        draft.place()
    return Backup(target, size, found)


def copy(path: Path, draft: Draft, on_progress: OnProgress | None) -> Facts:
    """Copy the database at `path` to `draft`, and verify the copy. Return its row counts and migrations.

    Raises `Failure` if the copy cannot be written or differs from the database.
    """
    target = draft.target
    try:
        copied = _copy(path, draft.path, on_progress)
    except OSError as error:
        raise Failure(f"The backup {target} cannot be written: {error.strerror}.") from None
    except apsw.Error as error:
        raise _failure(error, path, target) from None
    found = _verified(path, target, draft.path, on_progress)
    if found != copied:
        raise Failure(f"The backup {target} differs from the database and was deleted. Check the disk.")
    return found


def _verified(path: Path, target: Path, draft: Path, on_progress: OnProgress | None) -> Facts:
    """Verify the temporary copy `draft`. Return its row counts and migrations. Errors do not name this file."""
    try:
        return verify.check(draft, on_progress)
    except verify.DanglingRows:
        text = f"The database {path} is damaged, and no backup was created: a row refers to a missing row."
        raise Failure(f"{text} Run: musicsvc db check") from None
    except Damaged as damaged:
        reason = damaged.message.removeprefix(f"{draft} ")
        text = f"The backup {target} was not kept: the copy {reason} Check the disk, and run: musicsvc db check"
        raise Failure(text) from None


def _copy(path: Path, draft: Path, on_progress: OnProgress | None) -> Facts:
    """Copy one snapshot of the database into the file `draft`. Return the snapshot's row counts and migrations."""
    # Never opened as a plain file: closing one releases the POSIX locks of all connections of this process.
    with connected(path) as source:
        source.set_busy_timeout(BUSY_MILLISECONDS)
        verify.call_regularly(source, on_progress)
        source.pragma("query_only", value=True)
        # Without a transaction every commit would restart the copy.
        source.execute("BEGIN")
        found = verify.read_facts(source)
        if problem := history.too_old(f"The database {path}", found.migrations):
            raise Failure(problem)
        _require_room(draft.parent, int(source.pragma("page_count")) * int(source.pragma("page_size")))
        _copy_pages(source, draft, on_progress)
        return found


def _copy_pages(source: apsw.Connection, draft: Path, on_progress: OnProgress | None) -> None:
    with descriptors.opened(draft, os.O_RDWR) as descriptor:
        with connected(draft) as target:
            target.pragma("synchronous", "off")  # a partial copy is discarded, and a complete one synced below
            target.pragma("journal_mode", "off")
            with target.backup("main", source, "main") as copying:
                while not copying.step(SLICE_PAGES):
                    if on_progress is not None:
                        on_progress(copying.page_count - copying.remaining, copying.page_count)
                    os.fsync(descriptor)
                    time.sleep(PAUSE_SECONDS)
            target.pragma("journal_mode", "delete")  # a single file without a WAL, which any tool can open
        os.fsync(descriptor)


def _require_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Failure(
            f"There is no room for a backup in {folder}: it needs {needed / MEGABYTE:,.1f} MB, and"
            f" {free / MEGABYTE:,.1f} MB are free."
        )


def _failure(error: apsw.Error, path: Path, target: Path) -> Exception:
    if isinstance(error, apsw.FullError):
        return Failure(f"The disk of {target} is full; the backup was not kept.")
    if isinstance(error, apsw.IOError):
        # Not with SQLite's text, which is "not an error" for most faults of a copy.
        text = f"The backup {target} cannot be written, or {path} not be read: a disk may be full or failing."
        return Failure(f"{text} It was not kept.")
    if isinstance(error, apsw.BusyError):
        return Unavailable("The database is locked by another program. Try again shortly.")
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return Failure(f"The database {path} is damaged, and no backup was created. Run: musicsvc db check")
    return Failure(f"The backup {target} cannot be created: {error}.")


def overwrite(path: Path, backup: Path) -> None:
    """Copy the backup into the open database at `path`, in one transaction, so that connections stay open.

    The backup must be of the same schema. Raises Unavailable if the database stays locked.
    """
    with connected(backup) as source, connected(path) as target:
        try:
            changes.renew_epoch(source)  # cursors may be newer than the backup
            target.set_busy_timeout(BUSY_MILLISECONDS)
            with target.backup("main", source, "main") as copying:
                copying.step()
        except (apsw.BusyError, apsw.LockedError):
            raise Unavailable from None
