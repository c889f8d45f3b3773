"""What `doctor` finds about the files of an installation: who may read them, their room, its backups, leftovers."""

from __future__ import annotations

import os
import shutil
from stat import S_IMODE
from typing import TYPE_CHECKING

from musicsvc import permissions
from musicsvc.clock import SECOND
from musicsvc.errors import Failure
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.backups import restore, verify
from musicsvc.store.doctor.database import ok, problem, warning
from musicsvc.store.engine.sqlite import reserved_space

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from musicsvc.store.doctor.database import Finding

LOG_ELSEWHERE = "Let the user of the server read and write it, or point activity.file elsewhere."
OTHERS, GROUP = 0o007, 0o070
MEGABYTE = 1_000_000
LEAST_ROOM = 64 * MEGABYTE
HOUR = 3_600 * SECOND
UNSCHEDULED_HOURS = 48  # where the server makes no backups, somebody should at least so often


def of_permissions(secrets: Iterable[Path], folders: Iterable[Path]) -> list[Finding]:
    """Who may read what only the service should."""
    found = [finding for file in secrets if (finding := _readable(file))]
    found += [finding for folder in folders if (finding := _open_folder(folder))]
    return found or [ok("permissions", "What is secret can be read by its owner alone.")]


def of_owner(database: Path) -> list[Finding]:
    """Whether the database can be written at all."""
    denied = permissions.denial(database, write=True) if database.exists() else None
    return [problem("permissions", *denied)] if denied else []


def _readable(file: Path) -> Finding | None:
    """What is wrong with a file that holds secrets."""
    if not file.exists():
        return None
    mode = S_IMODE(file.stat().st_mode)
    if mode & OTHERS:
        return problem("permissions", f"Everybody on this machine may open {file}.", f"Run: chmod 600 {file}")
    if mode & GROUP:
        return warning("permissions", f"A whole group may open {file}.", f"Run: chmod 600 {file}")
    return None


def _open_folder(folder: Path) -> Finding | None:
    if not folder.is_dir() or not S_IMODE(folder.stat().st_mode) & (OTHERS | GROUP):
        return None
    return warning("permissions", f"Others may look into {folder}.", f"Run: chmod 700 {folder}")


def of_disks(database: Path, backups: Path, more: Iterable[Path]) -> list[Finding]:
    """How much room there is, a finding a disk: for the database, a backup of it, and whatever else is written."""
    size = sum(file.stat().st_size for file in database.parent.glob(f"{database.name}*") if file.is_file())
    disks: dict[int, tuple[Path, int]] = {}
    for folder, needed in ((database.parent, 0), (backups, size), *((other, 0) for other in more)):
        place = _existing(folder)
        disk = place.stat().st_dev
        first, before = disks.get(disk, (place, 0))
        disks[disk] = (first, max(before, needed))
    return [_room(place, needed) for place, needed in disks.values()]


def _existing(folder: Path) -> Path:
    """The folder, or what it will be made in."""
    return next(place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir())


def of_log(file: Path) -> list[Finding]:
    """What keeps the log of calls from being made or written where it is to be."""
    file = file.absolute()
    there = next(place for place in (file, *file.parents) if os.path.lexists(place))
    if there == file:
        barred = [place for place in (file, file.parent) if not os.access(place, os.R_OK | os.W_OK)]
    else:
        barred = [] if there.is_dir() and os.access(there, os.W_OK | os.X_OK) else [there]
    why = "is no folder" if barred and there != file and not there.is_dir() else "cannot be written by this user"
    return [
        problem("activity log", f"Calls cannot be logged to {file}: {place} {why}.", LOG_ELSEWHERE) for place in barred
    ]


def of_ballast(database: Path) -> list[Finding]:
    """Whether there is room for revocations on a full disk."""
    if not database.exists():
        return []
    file = database.resolve().with_name(reserved_space.NAME)
    size = file.stat().st_size if file.exists() else 0
    if size == reserved_space.SIZE:
        return [ok("ballast", "Room is kept for revocations on a full disk.")]
    sizes = f"{size / MEGABYTE:,.1f} of {reserved_space.SIZE / MEGABYTE:,.1f} MB"
    finding = f"{file} has {sizes}, to be given up for revocations."
    wanting = reserved_space.ReservedSpace(database).missing()
    if wanting:
        way_out = (
            f"Revocations may fail on a full disk. Free another {reserved_space.megabytes(wanting)} MB on this disk."
        )
        return [warning("ballast", finding, way_out)]
    return [warning("ballast", finding, "A server makes it whole.")]


def _room(place: Path, needed: int) -> Finding:
    free = shutil.disk_usage(place).free
    told = f"{free / MEGABYTE:,.0f} MB are free on the disk of {place}"
    if free < LEAST_ROOM:
        return problem("disk", f"Only {told}.", "Make room: on a full disk nothing can be written.")
    if free < needed + LEAST_ROOM:
        return warning("disk", f"{told}, and a backup takes {needed / MEGABYTE:,.0f} MB.", "Make room.")
    return ok("disk", f"{told}.")


def of_backups(database: Path, folder: Path, every_hours: int, *, now: int) -> Iterator[Finding]:
    """How old the last good backup is, which is opened for it; newer ones that are damaged are told."""
    if not every_hours:
        yield warning(
            "backups", "The server makes no backups (backups.every_hours = 0).", "Run musicsvc db backup every day."
        )
    if not database.exists():
        return
    found = backup_folder.entries(folder)
    for entry in found:
        if entry.at > now + backup_folder.AHEAD:
            finding = f"The backup {entry.file} is dated in the future."
            yield warning("backups", finding, "Delete it, or give it the name of its day.")
            continue
        try:
            verify.prove(entry.file)
        except Failure as failure:
            yield warning("backups", f"The backup {failure.message}", "Delete it.")
            continue
        yield _age(database, entry, (every_hours or UNSCHEDULED_HOURS) * HOUR, now)
        return
    way_out = "Run: musicsvc db backup"
    if every_hours:
        way_out += f" (a server makes one every {every_hours} hours)"
    # A new installation has none yet; where there are some, somebody relies on them.
    yield (problem if found else warning)("backups", f"There is no good backup in {folder}.", way_out)


def _age(database: Path, entry: backup_folder.Entry, every: int, now: int) -> Finding:
    hours = (now - entry.at) / HOUR
    told = f"The last good backup is {hours:,.0f} hours old ({entry.file})"
    files = (database, database.with_name(database.name + "-wal"))
    changed = max(file.stat().st_mtime_ns // 1000 for file in files if file.exists())
    if now - entry.at <= every + HOUR or changed <= entry.at + SECOND:
        return ok("backups", f"{told}.")
    way_out = "Run: musicsvc db backup, and look why the server made none: musicsvc activity, its log"
    if now - entry.at > 2 * every:
        return problem("backups", f"{told}, and the database has changed since.", way_out)
    return warning("backups", f"{told}, and the database has changed since.", way_out)


def of_leftovers(database: Path, backups: Path) -> list[Finding]:
    """What was left by something that was killed; locks never are."""
    found = [
        warning("leftovers", f"{file} was left by a backup that was cut off.", "The next backup removes it.")
        for file in backup_folder.abandoned(backups)
    ]
    found += [
        warning("leftovers", f"{file} was left by a restore that was cut off.", "The next restore puts it right.")
        for file in restore.left(database)
    ]
    found += [
        warning("leftovers", f"{folder} was left by an init that was cut off.", "Delete it.")
        for folder in database.parent.glob(".init-*")
    ]
    return found or [ok("leftovers", "Nothing was left half done.")]
