"""Checks of `musicsvc doctor` on files: permissions, disk space, the activity log, backups, leftovers."""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_IMODE

from musicsvc import permissions
from musicsvc.clock import HOUR, SECOND
from musicsvc.errors import Failure
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.backups import restore, verify
from musicsvc.store.backups.create import MEGABYTE
from musicsvc.store.doctor import Finding, ok, problem, warning
from musicsvc.store.engine.sqlite import reserved_space
from musicsvc.store.engine.sqlite.files import size as size_of
from musicsvc.wording import every, quantity

LOG_HINT = "Let the server's user read and write it, or set activity.file to another path."
OTHERS, GROUP = 0o007, 0o070
MIN_FREE = 64 * MEGABYTE
MIN_INODES = 32
UNSCHEDULED_HOURS = 48  # the maximum age of a backup if the server creates none


def check_permissions(secrets: Iterable[Path], folders: Iterable[Path]) -> list[Finding]:
    """Check that no other user can open the private files (`secrets`) or list the private folders."""
    found = [finding for file in secrets if (finding := _check_file(file))]
    found += [finding for folder in folders if (finding := _check_folder(folder))]
    return found or [ok("permissions", "Only their owner can open the private files.")]


def check_writable(database: Path, backups: Path) -> list[Finding]:
    """Check that this user can write the database and backups. A missing database is not a problem."""
    places = (database, backups / backup_folder.LOCK) if database.exists() else ()
    return [problem("permissions", *denied) for place in places if (denied := permissions.denial(place, write=True))]


def _check_file(file: Path) -> Finding | None:
    try:
        mode = S_IMODE(file.stat().st_mode)
    except FileNotFoundError:
        return None
    if mode & OTHERS:
        return problem("permissions", f"Every user of this machine can open {file}.", f"Run: chmod 600 {file}")
    if mode & GROUP:
        return warning("permissions", f"A group can open {file}.", f"Run: chmod 600 {file}")
    return None


def _check_folder(folder: Path) -> Finding | None:
    if not folder.is_dir() or not S_IMODE(folder.stat().st_mode) & (OTHERS | GROUP):
        return None
    return warning("permissions", f"Other users can list {folder}.", f"Run: chmod 700 {folder}")


def check_disks(database: Path, backups: Path, more: Iterable[Path]) -> list[Finding]:
    """Check the free space of each disk that holds the database, the backups or one of the folders `more`."""
    size = sum(size_of(file) for file in database.parent.glob(f"{database.name}*") if file.is_file())
    disks: dict[int, tuple[Path, int]] = {}
    for folder, needed in ((database.parent, 0), (backups, size), *((other, 0) for other in more)):
        place = _existing(folder)
        disk = place.stat().st_dev
        first, before = disks.get(disk, (place, 0))
        disks[disk] = (first, max(before, needed))
    return [_check_space(place, needed) for place, needed in disks.values()]


def _existing(folder: Path) -> Path:
    """Return the folder if it exists, else its nearest parent that exists."""
    return next(place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir())


def check_log_file(file: Path) -> list[Finding]:
    """Check that the activity log can be created and written."""
    file = file.absolute()
    existing = next(place for place in (file, *file.parents) if os.path.lexists(place))
    if existing == file:
        unwritable = [place for place in (file, file.parent) if not os.access(place, os.R_OK | os.W_OK)]
    else:
        unwritable = [] if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK) else [existing]
    not_folder = existing != file and not existing.is_dir()
    why = "is not a folder" if not_folder else "cannot be written by this user"
    return [
        problem("activity log", f"Calls cannot be logged to {file}: {place} {why}.", LOG_HINT) for place in unwritable
    ]


def check_reserved_space(database: Path) -> list[Finding]:
    """Check that disk space is reserved so that tokens can be revoked on a full disk."""
    if not database.exists():
        return []
    file = Path(os.path.realpath(database)).with_name(reserved_space.NAME)
    size = size_of(file)
    if size == reserved_space.SIZE:
        return [ok("ballast", "Disk space is reserved, so that tokens can be revoked on a full disk.")]
    sizes = f"{size / MEGABYTE:,.1f} of {reserved_space.SIZE / MEGABYTE:,.1f} MB"
    finding = f"{file} reserves {sizes} of disk space for revoking tokens."
    missing = reserved_space.ReservedSpace(database).missing()
    if missing:
        needed = reserved_space.megabytes(missing)
        hint = f"Revoking tokens may fail on a full disk. Free another {needed} MB on this disk."
        return [warning("ballast", finding, hint)]
    return [warning("ballast", finding, "A running server reserves the rest.")]


def _check_space(place: Path, needed: int) -> Finding:
    free = shutil.disk_usage(place).free
    status = os.statvfs(place)
    if status.f_files and status.f_favail < MIN_INODES:
        finding = f"Only {quantity(status.f_favail, 'more file')} can be created on the disk of {place}."
        return problem("disk", finding, "Delete files there (df -i counts them): without inodes no backup is created.")
    space = f"{free / MEGABYTE:,.0f} MB are free on the disk of {place}"
    if free < MIN_FREE:
        return problem("disk", f"Only {space}.", "Free some space: on a full disk, all writes fail.")
    if free < needed + MIN_FREE:
        return warning("disk", f"{space}, and a backup takes {needed / MEGABYTE:,.0f} MB.", "Free some space.")
    return ok("disk", f"{space}.")


def check_backups(database: Path, folder: Path, every_hours: int, *, now: int) -> Iterator[Finding]:
    """Check the age of the newest undamaged backup. Report newer ones that are damaged or dated in the future."""
    if not every_hours:
        yield warning(
            "backups", "The server creates no backups (backups.every_hours = 0).", "Run musicsvc db backup every day."
        )
    if not database.exists():
        return
    found = backup_folder.entries(folder)
    for entry in found:
        if entry.at > now + backup_folder.AHEAD:
            finding = f"The backup {entry.file} is dated in the future."
            yield warning("backups", finding, "Delete it, or correct the time in its name.")
            continue
        try:
            verify.check(entry.file)
        except Failure as failure:
            yield warning("backups", f"The backup {failure.message}", "Delete it.")
            continue
        yield _age(database, entry, (every_hours or UNSCHEDULED_HOURS) * HOUR, now)
        return
    hint = "Run: musicsvc db backup"
    if every_hours:
        hint += f" (a server creates one {every(every_hours, 'hour')})"
    # A new installation has no backup yet.
    yield (problem if found else warning)("backups", f"There is no undamaged backup in {folder}.", hint)


def _age(database: Path, entry: backup_folder.BackupFile, every: int, now: int) -> Finding:
    hours = round(max(now - entry.at, 0) / HOUR)  # a backup may be dated up to AHEAD in the future
    age = f"The newest undamaged backup is {quantity(hours, 'hour')} old ({entry.file})"
    files = (database, database.with_name(database.name + "-wal"))
    changed = max(map(_modified, files))
    if now - entry.at <= every + HOUR or changed <= entry.at + SECOND:
        return ok("backups", f"{age}.")
    hint = "Run: musicsvc db backup, and find out from the server's log why it created none"
    if now - entry.at > 2 * every:
        return problem("backups", f"{age}, and the database has changed since.", hint)
    return warning("backups", f"{age}, and the database has changed since.", hint)


def _modified(file: Path) -> int:
    """Return when the file was last modified, or 0 if it does not exist."""
    try:
        return file.stat().st_mtime_ns // 1000
    except FileNotFoundError:
        return 0


def check_leftovers(database: Path, backups: Path) -> list[Finding]:
    """Report temporary files that interrupted commands left behind."""
    found = [
        warning("leftovers", f"{file} was left by an interrupted backup.", "The next backup removes it.")
        for file in backup_folder.leftovers(backups)
    ]
    found += [
        warning("leftovers", f"{file} was left by an interrupted restore.", "The next restore cleans it up.")
        for file in restore.leftovers(database)
    ]
    found += [
        warning("leftovers", f"{folder} was left by an interrupted musicsvc init.", "Delete it.")
        for folder in database.parent.glob(".init-*")
    ]
    return found or [ok("leftovers", "There are no files of interrupted commands.")]
