"""A backup takes the place of the database: whole at every moment, and what was there before is kept.

The backup is copied beside the database and proved there; the old database is closed for good, which empties its WAL;
then one rename replaces it. Killed at any point there is the old database or the new one, never half of either.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from musicsvc.errors import Damaged, Failure
from musicsvc.store.backups import folder, regained_rights, verify
from musicsvc.store.backups.create import MEGABYTE
from musicsvc.store.engine.sqlite import file_locks, files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from musicsvc.store.backups.regained_rights import Revived
    from musicsvc.store.backups.verify import Facts, Told

SIDES = ("-wal", "-shm", "-journal")
OLD = "-old"
BEFORE = "before-restore"
PIECE = 1_048_576
BUSY_MILLISECONDS = 1000
UNCHANGED = "Nothing was changed."
WAY_OUT = "Nothing was changed; name another backup."


@dataclass(frozen=True, slots=True)
class Restored:
    """What was done.

    `kept`: where the replaced database is now, None where there was none or it was not to be kept; `revived`: what is
    valid again, None where that is not known.
    """

    facts: Facts
    kept: Path | None
    revived: Revived | None


def restore(file: Path, path: Path, *, now: int, keep: bool = True, told: Told | None = None) -> Restored:
    """Replace the database at `path` by the backup, which stays as it is.

    Raises Failure, and changes nothing, where the backup is no sound one or anybody uses the database.
    """
    path = path.resolve()
    if file.resolve() == path:
        raise Failure(f"{file} is the database itself. {WAY_OUT}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with file_locks.one_at_a_time(path), file_locks.exclusive(path):
            return _restore(file, path, now=now, keep=keep, told=told)
    except OSError as error:
        raise Failure(f"{path} cannot be replaced: {error.strerror}. The old database stands.") from None


def _restore(file: Path, path: Path, *, now: int, keep: bool, told: Told | None) -> Restored:
    tidy(path, now)
    with _staged(file, path, told) as (staged, facts):
        if not _closed(path) or keep:
            _link(path)
        _move(path, _replaced(path), SIDES)  # of a damaged one alone: a WAL of the old database would spoil the new
        # Names reach the disk in any order: the old one's WAL must be gone, its second name be there, before that.
        files.sync_folder(path.parent)
        staged.replace(path)
    kept = tidy(path, now)
    return Restored(facts, kept, regained_rights.since(path, kept) if kept else None)


def tidy(path: Path, now: int) -> Path | None:
    """Clear what a restore left beside the database, also one that was killed; where a replaced database is now."""
    for side in ("", *SIDES, OLD):
        _beside(_staging(path), side).unlink(missing_ok=True)
    replaced = _replaced(path)
    if replaced.exists() and files.identity(replaced) == files.identity(path):
        # It was not replaced after all: it gets back what was taken from it.
        _move(replaced, path, SIDES)
        replaced.unlink()
        return None
    found = any(_beside(replaced, side).exists() for side in ("", *SIDES))
    kept = folder.new_name(path.parent, now, BEFORE)
    _move(replaced, kept, ("", *SIDES))
    files.sync_folder(path.parent)
    return kept if found else None


def left(path: Path) -> list[Path]:
    """What a restore that was killed left beside the database."""
    path = path.resolve()
    return [file for file in (_staging(path), _replaced(path)) if os.path.lexists(file)]


def _staging(path: Path) -> Path:
    return path.with_name(f".{path.name}.restoring")


def _replaced(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


def _beside(path: Path, side: str) -> Path:
    return path.with_name(path.name + side)


def _move(path: Path, target: Path, sides: Iterable[str]) -> None:
    for side in sides:
        with suppress(FileNotFoundError):
            _beside(path, side).rename(_beside(target, side))


@contextmanager
def _staged(file: Path, path: Path, told: Told | None) -> Iterator[tuple[Path, Facts]]:
    """The backup as a database beside its place, proved and on the disk, with what it holds."""
    staged = _staging(path)
    try:
        _copy_whole(file, path, told)
        try:
            _settle(staged, "delete")
            facts = verify.prove(staged, told)
            _settle(staged, "wal")
        except Failure as failure:
            raise Failure(f"{failure.message.replace(str(staged), str(file))} {WAY_OUT}") from None
        except (apsw.CorruptError, apsw.NotADBError):
            raise Failure(f"{file} is damaged. {WAY_OUT}") from None
        except apsw.Error as error:
            raise Failure(f"A copy of {file} cannot be opened in {path.parent}: {error}. {UNCHANGED}") from None
        if facts.newer:
            raise Failure(f"{file} was made by a newer musicsvc. Install that version, or name an older backup.")
        if not facts.migrations:
            raise Failure(f"{file} has no tables of ours. {WAY_OUT}")
        _sync(staged)
        yield staged, facts
    finally:
        for side in ("", *SIDES):
            _beside(staged, side).unlink(missing_ok=True)


def _copy_whole(file: Path, path: Path, told: Told | None) -> None:
    """Copy the backup, with what SQLite may have left beside it where it was copied by hand."""
    if not file.is_file():
        raise Failure(f"There is no file {file}. {WAY_OUT}")
    size, free = file.stat().st_size, shutil.disk_usage(path.parent).free
    if free < size:
        raise Failure(
            f"There is no room in {path.parent}: the backup needs {size / MEGABYTE:,.1f} MB, and"
            f" {free / MEGABYTE:,.1f} MB are free. {UNCHANGED}"
        )
    _copy(file, _staging(path), told)
    for side in ("-wal", "-journal"):
        if (beside := _beside(file, side)).is_file():
            _copy(beside, _beside(_staging(path), side), told)


def _copy(source: Path, target: Path, told: Told | None) -> None:
    size, done = source.stat().st_size, 0
    with (
        source.open("rb") as read,
        open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written,  # noqa: PTH123
    ):
        while piece := read.read(PIECE):
            written.write(piece)
            done += len(piece)
            if told is not None:
                told(done, size)


def _closed(path: Path) -> bool:
    """Empty the WAL of the old database and take leave of it; False where it is damaged or not there.

    Raises Failure where it belongs to another program or cannot be opened, or where somebody has it open.
    """
    if not path.exists():
        return False
    try:
        files.examine(path)
        _leave(path)
    except (Damaged, apsw.CorruptError, apsw.NotADBError):
        return False
    except apsw.BusyError:
        raise Failure(file_locks.in_use(path)) from None
    except apsw.Error as error:
        raise Failure(f"The old database {path} cannot be closed: {error}. {UNCHANGED}") from None
    return True


def _leave(path: Path) -> None:
    """To leave the WAL mode a connection must be the only one, also of programs that know no lock of ours."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        if connection.pragma("journal_mode", "delete") != "delete":
            raise apsw.BusyError
    finally:
        connection.close()


def _link(path: Path) -> None:
    """Have the old database, where there is one, under a second name."""
    with suppress(FileNotFoundError):
        try:
            _replaced(path).hardlink_to(path)
        except FileNotFoundError:
            raise
        except OSError:  # a file system without hard links
            copy = _beside(_staging(path), OLD)
            _copy(path, copy, None)
            _sync(copy)
            copy.rename(_replaced(path))


def _settle(file: Path, journal: str) -> None:
    """Take over what a WAL or journal beside the file holds, and close it in this journal mode."""
    verify.glance(file)
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.pragma("journal_mode", journal)
    finally:
        connection.close()


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
