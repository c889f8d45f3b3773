"""Name, find and delete the backups in a folder, and create the files of unfinished backups."""

import logging
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from musicsvc import descriptors, permissions
from musicsvc.clock import MINUTE, parse, to_datetime
from musicsvc.errors import Failure
from musicsvc.store.backups import verify
from musicsvc.store.backups.verify import OnProgress
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.sqlite import files as sqlite_files

log = logging.getLogger("musicsvc")
SCHEDULED = "scheduled"
PARTIAL = ".partial"
LOCK = ".schedule.lock"  # locked by the process that creates scheduled backups; lists the ids of damaged backups
NAME = re.compile(r"musicsvc-(?:(?P<kind>.+)-)?(?P<stamp>[0-9]{8}T[0-9]{6}Z)(?:-[0-9]+)?\.db", re.ASCII)
LEFTOVER = re.compile(rf"\.{NAME.pattern}\.partial", re.ASCII)
AHEAD = 5 * MINUTE  # a backup dated later than this from now was created with a wrong clock


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A file named like a backup. The kind (such as `scheduled`, or empty) and the time `at` are parts of the name."""

    file: Path
    kind: str
    at: int


def new_name(folder: Path, now: int, kind: str = "") -> Path:
    """Return an unused path such as `musicsvc-20260131T120000Z.db` or, with a `kind`, `musicsvc-KIND-….db`."""
    stem = f"musicsvc-{kind}-" if kind else "musicsvc-"
    stem += to_datetime(now).strftime("%Y%m%dT%H%M%SZ")
    names = (folder / f"{stem}{ending}.db" for ending in ("", *(f"-{number}" for number in range(2, 10_000))))
    return next(name for name in names if not os.path.lexists(name))


def entries(folder: Path) -> list[BackupFile]:
    """Return the files in the folder that are named like backups, newest first. The folder may be missing.

    Raises `Failure` if it cannot be read.
    """
    try:
        files = list(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Failure(f"The folder {folder} cannot be read: {error.strerror}.") from None
    found = []
    for file in files:
        named = NAME.fullmatch(file.name)
        with suppress(ValueError):  # the digits of the stamp are not a valid time
            if named and file.is_file():
                found.append(BackupFile(file, named["kind"] or "", parse(named["stamp"])))
    return sorted(found, key=lambda entry: (entry.at, entry.file.name), reverse=True)


def newest(folder: Path, now: int, kind: str | None = None, damaged: Collection[str] = ()) -> BackupFile | None:
    """Return the newest backup, or None. Skip files with a damaged header, a future date, or an id in `damaged`.

    `kind` selects backups of one kind, such as `scheduled`. `damaged` has ids that the function `file_id` returned.
    """
    for entry in entries(folder):
        if entry.at <= now + AHEAD and kind in {None, entry.kind}:
            with suppress(Failure, FileNotFoundError):
                verify.check_header(entry.file)
                if file_id(entry.file) not in damaged:
                    return entry
    return None


def file_id(file: Path) -> str:
    """Return a text that identifies the file and its content: name, inode, size and modification time."""
    status = file.stat()
    return f"{file.name} {status.st_ino} {status.st_size} {status.st_mtime_ns}"


def known_damaged(folder: Path) -> list[str]:
    """Return the `file_id` of each backup that the scheduler found damaged."""
    try:
        return (folder / LOCK).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []


def prune(folder: Path, keep: int, fresh: Path, *, now: int, on_progress: OnProgress | None = None) -> list[Path]:
    """Delete the scheduled backups that are older than the newest `keep` undamaged ones. Return the deleted files.

    `fresh`, the newest backup, is already verified. Backups dated in the future are neither counted nor deleted.
    """
    scheduled = [entry for entry in entries(folder) if entry.kind == SCHEDULED and entry.file != fresh]
    old = [entry for entry in scheduled if entry.at <= now + AHEAD]
    undamaged = 1
    if len(old) < keep:
        return []
    deleted = []
    for entry in old:
        if undamaged < keep and _is_undamaged(entry.file, on_progress):
            undamaged += 1
        elif undamaged >= keep:
            entry.file.unlink(missing_ok=True)
            deleted.append(entry.file)
    return deleted


def _is_undamaged(file: Path, on_progress: OnProgress | None) -> bool:
    try:
        verify.check(file, on_progress)
    except Failure as failure:
        log.warning("ignoring a damaged backup; delete it: %s", failure.here)
        return False
    return True


@dataclass(frozen=True, slots=True)
class Draft:
    """An unfinished backup at `path`. `target` is its final name."""

    path: Path
    target: Path

    def place(self) -> None:
        """Rename the file to its final name, and sync the folder to disk. Raises Failure if that name exists."""
        try:
            sqlite_files.rename_durably(self.path, self.target)
        except FileExistsError:
            raise _taken(self.target) from None


@contextmanager
def draft(target: Path, database: Path | None = None) -> Iterator[Draft]:
    """Create an empty file for a backup of `database`. Delete it after the block unless it was renamed to `target`.

    Raises `Failure` if the target exists, another backup to it is in progress, or the folder cannot be written.
    """
    if os.path.lexists(target):
        raise _taken(target)
    path = target.with_name(f".{target.name}{PARTIAL}")
    try:
        _remove_leftovers(target.parent, path.name)
        descriptor = _create_locked(path, database)
    except FileNotFoundError:
        raise Failure(f"There is no folder {target.parent}. Create it, or name another one.") from None
    except FileExistsError:
        raise Failure(f"Another backup to {target} is in progress.") from None
    except OSError as error:
        denied = permissions.denial(target, write=True)
        raise Failure(str(denied or f"The folder {target.parent} cannot be written: {error.strerror}.")) from None
    try:
        yield Draft(path, target)
    finally:
        _remove(path)
        os.close(descriptor)


def _remove_leftovers(folder: Path, *names: str) -> None:
    """Delete unfinished backups of killed processes, and the files `names`. Keep files that running backups locked."""
    for file in folder.iterdir():
        if LEFTOVER.fullmatch(file.name) or file.name in names:
            _if_unlocked(file, _remove)


def prepare(folder: Path) -> None:
    """Create the folder if it is missing. Raises Failure."""
    try:
        descriptors.make_folder(folder)
    except OSError as error:
        fault = error.strerror
        if isinstance(error, FileExistsError):
            place = os.path.realpath(folder)
            fault = "it is not a folder" if folder.exists() else f"it is a link to {place}, which is missing"
        denied = permissions.denial(folder, write=True)
        text = f"The folder {folder} cannot be created: {fault}. Create it, or set backups.folder."
        raise Failure(str(denied or text)) from None


def in_progress(folder: Path) -> bool:
    """Return whether a process is writing a backup into the folder, which must exist."""
    drafts = [file for file in folder.iterdir() if LEFTOVER.fullmatch(file.name)]
    return len(drafts) > len(leftovers(folder))


def leftovers(folder: Path) -> list[Path]:
    """Return the unfinished backups that killed processes left in the folder."""
    found: list[Path] = []
    for file in folder.iterdir() if folder.is_dir() else ():
        if LEFTOVER.fullmatch(file.name):
            _if_unlocked(file, found.append)
    return found


def _if_unlocked(file: Path, act: Callable[[Path], object]) -> None:
    """Call `act` with the file, unless a running backup has locked the file."""
    with suppress(FileNotFoundError), descriptors.opened(file, os.O_RDWR) as descriptor:
        free = False
        with suppress(OSError):  # a file system without locks: the backup may be in progress
            free = file_locks.acquire(descriptor, timeout=0)
        if free:
            act(file)


def _create_locked(path: Path, like: Path | None) -> int:
    """Create and lock a file, and return its descriptor. Raises FileExistsError if another backup uses the file."""
    while True:
        descriptor = descriptors.create(path, like)
        with suppress(OSError):  # a file system without locks, where leftovers are not removed
            file_locks.acquire(descriptor)
        if sqlite_files.identity(path) is not None:
            return descriptor
        os.close(descriptor)  # removed by another process before it was locked


def _remove(path: Path) -> None:
    for file in (path, path.with_name(path.name + "-journal")):
        file.unlink(missing_ok=True)


def _taken(target: Path) -> Failure:
    return Failure(f"{target} exists and is not replaced. Name another file.")
