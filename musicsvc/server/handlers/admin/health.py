"""The state of the installation: backups, and the checks of `musicsvc doctor`."""

from collections.abc import Callable, Iterator
from pathlib import Path

from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.server.schemas.pages.admin import HealthQuery
from musicsvc.server.shapes.pages import View
from musicsvc.store.backups import folder
from musicsvc.store.backups.folder import BackupFile
from musicsvc.store.doctor import Finding
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import path_of, without_password

LEVELS = ("problem", "warning", "ok")


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
    backup, fault = _last_backup(backup_folder, now)
    values = {
        "findings": findings,
        "database": without_password(store.url),
        "makes_backups": path_of(store.url) is not None,
        "backup": backup,
        "fault": fault,
        "every_hours": settings.backups.every_hours,
    }
    return View("admin/health.html", values, part="checks")


def _last_backup(place: Path, now: int) -> tuple[BackupFile | None, str | None]:
    """Return the newest backup or None, and an error message if the backup folder cannot be read, else None."""
    try:
        return folder.newest(place, now), None
    except Failure as failure:
        return None, failure.message
