"""The state of the installation: backups, and the checks of `musicsvc doctor`.

Restoring and downloading of backups is left to the command line.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from musicsvc.config import Settings
from musicsvc.errors import Conflict, Failure
from musicsvc.server.schemas.pages.admin import HealthQuery
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.backups import folder
from musicsvc.store.backups.folder import BackupFile
from musicsvc.store.doctor import Finding
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import path_of, without_password

BACKUPS = "/admin/backups"
LEVELS = ("problem", "warning", "ok")


class BackupRow(NamedTuple):
    """A backup in the folder, its size in bytes, and whether it is known to be damaged."""

    backup: BackupFile
    size: int
    damaged: bool


def list_backups(store: Store, backup_folder: Path) -> View:
    """Show the newest backups, and the button to create one."""
    fault, found, busy = None, [], False
    try:
        found = folder.entries(backup_folder)
        busy = backup_folder.is_dir() and folder.in_progress(backup_folder)
    except (Failure, OSError) as error:
        fault = str(error)
    damaged = set(folder.known_damaged(backup_folder))
    rows = []
    for backup in found[: pages.SHOWN]:
        with suppress(FileNotFoundError):  # deleted meanwhile
            rows.append(BackupRow(backup, backup.file.stat().st_size, folder.file_id(backup.file) in damaged))
    values = {"rows": rows, "total": len(found), "fault": fault, "busy": busy, "folder": backup_folder}
    return View("admin/backups.html", values | {"possible": path_of(store.url) is not None})


def create_backup(store: Store, create_backup: Callable[..., Path], now: int) -> Redirect:
    """Create a backup and verify it. For PostgreSQL, the page says that other tools do.

    Raises Conflict if that fails.
    """
    if path_of(store.url) is None:
        return Redirect(BACKUPS)
    try:
        file = create_backup(now=now)
    except Failure as failure:
        raise Conflict(failure.message) from None
    return Redirect(BACKUPS, f"{file.name} is created and verified.")


def show(
    query: HealthQuery,
    store: Store,
    backup_folder: Path,
    check_installation: Callable[..., Iterator[Finding]],
    settings: Settings,
    now: int,
) -> View:
    """Show the last backup, and on request the results of all checks of the installation."""
    findings = sorted(check_installation(now=now), key=lambda each: LEVELS.index(each.level)) if query.checks else None
    backup, fault = None, None
    try:
        backup = folder.newest(backup_folder, now)
    except Failure as failure:
        fault = failure.message
    values = {
        "findings": findings,
        "database": without_password(store.url),
        "makes_backups": path_of(store.url) is not None,
        "backup": backup,
        "fault": fault,
        "every_hours": settings.backups.every_hours,
    }
    return View("admin/health.html", values, part="checks")
