"""Backups of the database: list and create them. Restoring and downloading is left to the command line."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from musicsvc.errors import Conflict, Failure
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.backups import folder
from musicsvc.store.backups.folder import BackupFile
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import path_of

PATH = "/admin/backups"


class BackupRow(NamedTuple):
    """A backup in the folder, its size in bytes, and whether it is known to be damaged."""

    backup: BackupFile
    size: int
    damaged: bool


def show(store: Store, backup_folder: Path) -> View:
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


def create(store: Store, create_backup: Callable[..., Path], now: int) -> Redirect:
    """Create a backup and verify it. For PostgreSQL, the page says that other tools do."""
    if path_of(store.url) is None:
        return Redirect(PATH)
    try:
        file = create_backup(now=now)
    except Failure as failure:
        raise Conflict(failure.message) from None
    return Redirect(PATH, f"{file.name} is created and verified.")
