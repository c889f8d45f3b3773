"""The folder of backups: their names, how a file gets one, and which of them are kept."""

from __future__ import annotations

import logging
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from musicsvc.clock import MINUTE, parse, to_datetime
from musicsvc.errors import Failure
from musicsvc.store.backups import verify
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.sqlite import files as sqlite_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from musicsvc.store.backups.verify import Told

log = logging.getLogger("musicsvc")
SCHEDULED = "scheduled"
PARTIAL = ".partial"
LOCK = ".schedule.lock"  # of the process that makes backups by the clock; what it has found damaged stands in it
NAME = re.compile(r"musicsvc-(?:(?P<kind>.+)-)?(?P<stamp>[0-9]{8}T[0-9]{6}Z)(?:-[0-9]+)?\.db", re.ASCII)
LEFTOVER = re.compile(rf"\.{NAME.pattern}\.partial", re.ASCII)
AHEAD = 5 * MINUTE  # a backup that is dated later than this was made under a clock that went wrong


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that bears a backup's name; `kind` is empty for one that was asked for."""

    file: Path
    kind: str
    at: int


def new_name(folder: Path, now: int, kind: str = "") -> Path:
    """A name that is free: `musicsvc-20260131T120000Z.db`, with what it is for before the time."""
    stem = f"musicsvc-{kind}-" if kind else "musicsvc-"
    stem += to_datetime(now).strftime("%Y%m%dT%H%M%SZ")
    names = (folder / f"{stem}{ending}.db" for ending in ("", *(f"-{number}" for number in range(2, 10_000))))
    return next(name for name in names if not os.path.lexists(name))


def entries(folder: Path) -> list[Entry]:
    """What bears a backup's name, newest first; nothing where there is no such folder."""
    try:
        files = list(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Failure(f"The folder {folder} cannot be read: {error.strerror}.") from None
    found = []
    for file in files:
        named = NAME.fullmatch(file.name)
        with suppress(ValueError):  # a stamp that is no moment
            if named and file.is_file():
                found.append(Entry(file, named["kind"] or "", parse(named["stamp"])))
    return sorted(found, key=lambda entry: (entry.at, entry.file.name), reverse=True)


def newest(folder: Path, now: int, kind: str | None = None, damaged: Collection[str] = ()) -> Entry | None:
    """The last backup, of this kind alone where one is given, that is whole at a glance and not of the future.

    `damaged`: the marks of those that were opened, and are not whole.
    """
    for entry in entries(folder):
        if entry.at <= now + AHEAD and kind in {None, entry.kind}:
            with suppress(Failure, FileNotFoundError):
                verify.glance(entry.file)
                if mark(entry.file) not in damaged:
                    return entry
    return None


def mark(file: Path) -> str:
    """What tells the file from every other one, and from itself once it was written to."""
    status = file.stat()
    return f"{file.name} {status.st_ino} {status.st_size} {status.st_mtime_ns}"


def found_damaged(folder: Path) -> list[str]:
    """The marks of those that the process which makes backups has opened, and found damaged."""
    try:
        return (folder / LOCK).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []


def prune(folder: Path, keep: int, fresh: Path, *, now: int, told: Told | None = None) -> list[Path]:
    """Delete scheduled backups but for the newest `keep` that are sound; the files that went.

    `fresh` was proved just now. What is damaged does not count, what is dated in the future is left alone.
    """
    scheduled = [entry for entry in entries(folder) if entry.kind == SCHEDULED and entry.file != fresh]
    old = [entry for entry in scheduled if entry.at <= now + AHEAD]
    sound = 1
    if len(old) < keep:
        return []
    gone = []
    for entry in old:
        if sound < keep and _is_sound(entry.file, told):
            sound += 1
        elif sound >= keep:
            entry.file.unlink(missing_ok=True)
            gone.append(entry.file)
    return gone


def _is_sound(file: Path, told: Told | None) -> bool:
    try:
        verify.prove(file, told)
    except FileNotFoundError:
        return False
    except Failure as failure:
        log.warning("a backup does not count: %s", failure.message)
        return False
    return True


@dataclass(frozen=True, slots=True)
class Draft:
    """A file that does not bear its name yet."""

    path: Path
    target: Path

    def place(self) -> None:
        """Give the file its name; it is on the disk afterwards. Raises Failure where the name is taken."""
        try:
            sqlite_files.rename_durably(self.path, self.target)
        except FileExistsError:
            raise _taken(self.target) from None


@contextmanager
def draft(target: Path) -> Iterator[Draft]:
    """An empty file that is to be `target`; gone afterwards where it was not placed."""
    if os.path.lexists(target):
        raise _taken(target)
    path = target.with_name(f".{target.name}{PARTIAL}")
    try:
        sweep(target.parent, path.name)
        descriptor = _locked(path)
    except FileNotFoundError:
        raise Failure(f"There is no folder {target.parent}. Make it, or name another one.") from None
    except FileExistsError:
        raise Failure(f"Another backup to {target} is under way.") from None
    except OSError as error:
        raise Failure(f"The folder {target.parent} cannot be written: {error.strerror}.") from None
    try:
        yield Draft(path, target)
    finally:
        _remove(path)
        os.close(descriptor)


def sweep(folder: Path, *names: str) -> None:
    """Remove what backups that were killed left half done; those under way are left alone."""
    for file in folder.iterdir():
        if LEFTOVER.fullmatch(file.name) or file.name in names:
            _unless_written(file, _remove)


def abandoned(folder: Path) -> list[Path]:
    """What a sweep would remove."""
    found: list[Path] = []
    for file in folder.iterdir() if folder.is_dir() else ():
        if LEFTOVER.fullmatch(file.name):
            _unless_written(file, found.append)
    return found


def _unless_written(file: Path, act: Callable[[Path], object]) -> None:
    """Do it with the file unless a backup that is under way writes it."""
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        free = False
        with suppress(OSError):  # a file system without locks: the backup may be in progress
            free = file_locks.acquire(descriptor, timeout=0)
        if free:
            act(file)
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int:
    """A new file, which a sweep takes for one under way. Raises FileExistsError where another backup writes it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with suppress(OSError):  # a network's disk without locks: nothing is swept there
            file_locks.acquire(descriptor)
        if sqlite_files.identity(path) is not None:
            return descriptor
        os.close(descriptor)  # swept between its making and its lock


def _remove(path: Path) -> None:
    for file in (path, path.with_name(path.name + "-journal")):
        file.unlink(missing_ok=True)


def _taken(target: Path) -> Failure:
    return Failure(f"{target} is there already, and is not replaced. Name another file.")
