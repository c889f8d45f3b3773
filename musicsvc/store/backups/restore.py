"""Restore a backup: verify a copy of it, replace the database atomically, and keep the replaced database."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from musicsvc import descriptors, permissions
from musicsvc.errors import Damaged, Failure
from musicsvc.store.backups import folder, regained_rights, verify
from musicsvc.store.backups.create import MEGABYTE
from musicsvc.store.backups.regained_rights import RegainedRights
from musicsvc.store.backups.verify import Facts, OnProgress
from musicsvc.store.catalog import changes
from musicsvc.store.engine.sqlite import file_locks, files
from musicsvc.store.schema import history
from musicsvc.wording import quantity

SUFFIXES = ("-wal", "-shm", "-journal")
OLD = "-old"
BEFORE = "before-restore"
CHUNK = 1_048_576
LOG = "INSERT INTO security_event (at, kind, actor, reason) VALUES (?, 'db.restored', 'cli', ?)"
BUSY_MILLISECONDS = 1000
UNCHANGED = "Nothing was changed."
HINT = "Nothing was changed; name another backup."


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of a restore. `facts` are the row counts and migrations of the backup.

    `kept` is the file of the replaced database, if it was kept. `regained` are rights that were taken away after the
    backup and are valid again; None if the replaced database cannot be read.
    """

    facts: Facts
    kept: Path | None
    regained: RegainedRights | None


def restore(
    file: Path, path: Path, *, now: int, keep: bool = True, on_progress: OnProgress | None = None
) -> RestoreResult:
    """Replace the database at `path` by a copy of the backup `file`. Without `keep`, delete the old database if intact.

    Raises Failure without changing anything if the backup is damaged or the database is in use.
    """
    path = Path(os.path.realpath(path))
    if os.path.realpath(file) == str(path):
        raise Failure(f"{file} is the database itself. {HINT}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with file_locks.one_at_a_time(path), file_locks.exclusive(path):
            return _restore(file, path, now=now, keep=keep, on_progress=on_progress)
    except OSError as error:
        denied = permissions.denial(Path(error.filename or path), write=True)
        fault = denied or f"{error.strerror}."
        raise Failure(f"{path} cannot be replaced: {fault} The old database was kept.") from None


def _restore(file: Path, path: Path, *, now: int, keep: bool, on_progress: OnProgress | None) -> RestoreResult:
    clean_up(path, now)
    with _staged(file, path, now, on_progress) as (staged, facts):
        if not _close(path) or keep:
            _link(path)
        _move(path, _replaced(path), SUFFIXES)  # left only by a damaged database: its WAL would corrupt the new one
        # Renames may reach the disk in any order. Sync the removal of the old WAL and the second name before the last.
        files.sync_folder(path.parent)
        staged.replace(path)
    kept = clean_up(path, now)
    return RestoreResult(facts, kept, regained_rights.find(path, kept, now=now) if kept else None)


def clean_up(path: Path, now: int) -> Path | None:
    """Delete temporary files of a finished or killed restore. Return the new path of the replaced database, or None."""
    for suffix in ("", *SUFFIXES, OLD):
        _with(_staging(path), suffix).unlink(missing_ok=True)
    replaced = _replaced(path)
    if replaced.exists() and files.identity(replaced) == files.identity(path):
        # The database was not replaced: its WAL is moved back.
        _move(replaced, path, SUFFIXES)
        replaced.unlink()
        return None
    found = any(_with(replaced, suffix).exists() for suffix in ("", *SUFFIXES))
    kept = folder.new_name(path.parent, now, BEFORE)
    _move(replaced, kept, ("", *SUFFIXES))
    files.sync_folder(path.parent)
    return kept if found else None


def leftovers(path: Path) -> list[Path]:
    """Return the temporary files of a killed restore."""
    path = Path(os.path.realpath(path))
    return [file for file in (_staging(path), _replaced(path)) if os.path.lexists(file)]


def _staging(path: Path) -> Path:
    return path.with_name(f".{path.name}.restoring")


def _replaced(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


def _with(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _move(path: Path, target: Path, suffixes: Iterable[str]) -> None:
    for suffix in suffixes:
        with suppress(FileNotFoundError):
            _with(path, suffix).rename(_with(target, suffix))


@contextmanager
def _staged(file: Path, path: Path, now: int, on_progress: OnProgress | None) -> Iterator[tuple[Path, Facts]]:
    """Copy the backup into the database's folder, and verify the copy. Yield its path, row counts and migrations."""
    staged = _staging(path)
    try:
        _copy_whole(file, path, on_progress)
        try:
            _set_journal_mode(staged, "delete")
            facts = verify.check(staged, on_progress)
            problem = _refusal(facts, file)
            if problem is None:
                _adapt(staged, f"{quantity(facts.rows, 'row')} from {file.name}", now)
                _set_journal_mode(staged, "wal")
        except Failure as failure:
            raise Failure(f"{failure.message.replace(str(staged), str(file))} {HINT}") from None
        except (apsw.CorruptError, apsw.NotADBError):
            raise Failure(f"{file} is damaged. {HINT}") from None
        except apsw.Error as error:
            raise Failure(f"A copy of {file} cannot be opened in {path.parent}: {error}. {UNCHANGED}") from None
        if problem is not None:
            raise Failure(problem)
        descriptors.sync(staged)
        yield staged, facts
    finally:
        for suffix in ("", *SUFFIXES):
            _with(staged, suffix).unlink(missing_ok=True)


def _refusal(facts: Facts, file: Path) -> str | None:
    """Return an error message if no database can be made of the backup."""
    if not facts.migrations:
        return f"{file} has no tables of musicsvc. {HINT}"
    return history.refusal(str(file), facts.migrations)


def _copy_whole(file: Path, path: Path, on_progress: OnProgress | None) -> None:
    """Copy the backup and its WAL or journal file, which backups created by other programs may have."""
    if not file.is_file():
        raise Failure(f"There is no file {file}. {HINT}")
    size, free = file.stat().st_size, shutil.disk_usage(path.parent).free
    if free < size:
        raise Failure(
            f"There is no room in {path.parent}: the backup needs {size / MEGABYTE:,.1f} MB, and"
            f" {free / MEGABYTE:,.1f} MB are free. {UNCHANGED}"
        )
    _copy(file, _staging(path), on_progress)
    for suffix in ("-wal", "-journal"):
        if (journal := _with(file, suffix)).is_file():
            _copy(journal, _with(_staging(path), suffix), on_progress)


def _copy(source: Path, target: Path, on_progress: OnProgress | None) -> None:
    size, done = source.stat().st_size, 0
    with (
        source.open("rb") as read,
        open(descriptors.create(target), "wb") as written,  # noqa: PTH123 - sets mode and owner
    ):
        while chunk := read.read(CHUNK):
            written.write(chunk)
            done += len(chunk)
            if on_progress is not None:
                on_progress(done, size)


def _close(path: Path) -> bool:
    """Merge the WAL of the old database into the database file. Return False if the file is damaged or missing.

    Raises Failure if the database belongs to another program, cannot be opened, or is in use.
    """
    if not path.exists():
        return False
    try:
        files.examine(path)
        _leave_wal_mode(path)
    except (Damaged, apsw.CorruptError, apsw.NotADBError):
        return False
    except apsw.BusyError:
        raise Failure(file_locks.in_use(path)) from None
    except apsw.Error as error:
        raise Failure(f"The old database {path} cannot be closed: {error}. {UNCHANGED}") from None
    return True


def _leave_wal_mode(path: Path) -> None:
    """Switch the database from WAL mode to a single file. Raises BusyError while another program has it open."""
    with files.connected(path) as connection:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        if connection.pragma("journal_mode", "delete") != "delete":
            raise apsw.BusyError


def _link(path: Path) -> None:
    """Give the old database, if there is one, a second name, under which it remains when `path` is replaced."""
    with suppress(FileNotFoundError):
        try:
            _replaced(path).hardlink_to(path)
        except FileNotFoundError:
            raise
        except OSError:  # a file system without hard links
            copy = _with(_staging(path), OLD)
            _copy(path, copy, None)
            descriptors.sync(copy)
            copy.rename(_replaced(path))


def _set_journal_mode(file: Path, journal: str) -> None:
    """Merge the WAL or rollback journal into the database file, then set the journal mode `journal`, such as `wal`."""
    verify.check_header(file)
    with files.connected(file) as connection:
        connection.pragma("journal_mode", journal)


def _adapt(file: Path, source: str, now: int) -> None:
    """Log the restore, and delete sessions and password links, which may have ended or been used after the backup.

    No cursor of changes is valid any more: it may be newer than the backup.
    `source`: what is restored from which file.
    """
    with files.connected(file) as connection:
        connection.pragma("journal_mode", "memory")  # the file is a copy, and is synced before it takes its place
        connection.execute("DELETE FROM session; DELETE FROM password_link")
        changes.renew_epoch(connection)
        connection.execute(LOG, (now, source.encode(errors="replace").decode()))
