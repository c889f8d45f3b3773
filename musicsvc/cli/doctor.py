"""`musicsvc doctor`: what is wrong with the installation, and the way out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from musicsvc.cli import output
from musicsvc.cli.output import Json
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.store.address import without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from musicsvc.config import Settings
    from musicsvc.store.soundness import Finding

app = typer.Typer()


@app.command()
def doctor(context: typer.Context, json: Json = False) -> None:
    """Look for what is wrong with the installation, and tell the way out.

    Beside a running server too. Warnings are exit 0, problems exit 1.
    """
    session = Session.of(context)
    found = list(_findings(session))
    wrong = sum(finding.level == "problem" for finding in found)
    if json:
        output.value({"ok": not wrong, "findings": [asdict(finding) for finding in found]})
    else:
        output.rows(
            session, [asdict(finding) for finding in found], ("level", "check", "finding", "way_out"), json=False
        )
    warnings = sum(finding.level == "warning" for finding in found)
    session.say(f"Problems: {wrong}, warnings: {warnings}." if wrong or warnings else "All is well.")
    if wrong:
        raise typer.Exit(1)


def _findings(session: Session) -> Iterator[Finding]:
    from musicsvc.server import exposure
    from musicsvc.store import soundness, sqlite_files, surroundings

    try:
        settings = session.settings()
    except Failure as failure:
        yield soundness.failed("settings", failure, "Put it right; musicsvc config show lists all settings.")
        return
    now = session.clock.now()
    path = sqlite_files.path_of(settings.store_url)
    yield soundness.of_clock(now)
    found = soundness.of_database(settings.store_url, now=now)
    yield from found
    if path is not None or not any(finding.check == "database" for finding in found):
        yield from _of_log(settings, path)
    yield from _tried("permissions", lambda: surroundings.of_permissions(*_guarded(session, settings, path)))
    if path is not None:
        yield from _of_files(settings, path, now)
    yield from _tried("TLS", lambda: exposure.of_tls(settings.server, now=now))
    yield from exposure.of_settings(settings)
    yield exposure.of_descriptors(settings)


def _tried(check: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What is found; what keeps us from looking is a finding too."""
    from musicsvc.store import soundness

    try:
        return list(look())
    except Failure as failure:
        return [soundness.failed(check, failure)]
    except OSError as error:
        return [soundness.failed(check, Failure(f"{error.filename}: {error.strerror}."))]


def _guarded(session: Session, settings: Settings, path: Path | None) -> tuple[list[Path], list[Path]]:
    """The files and folders that only the service should open."""
    from musicsvc import config
    from musicsvc.store import backups_folder

    secrets = [] if settings.server.tls_key is None else [settings.server.tls_key]
    if without_password(settings.database_url) != settings.database_url:
        secrets.append(config.file_of(session.config))
    if path is None:
        return secrets, []
    secrets += [path, path.with_name(path.name + "-wal"), _log(settings, path)]
    secrets += [entry.file for entry in backups_folder.entries(settings.backup_folder)]
    return secrets, [path.parent, settings.backup_folder]


def _log(settings: Settings, path: Path) -> Path:
    from musicsvc.store import logfile

    return settings.activity.file or logfile.place(path)


def _of_files(settings: Settings, path: Path, now: int) -> Iterator[Finding]:
    """How the files of a SQLite installation stand."""
    from musicsvc.store import surroundings

    folder = settings.backup_folder
    every = settings.backups.every_hours
    yield from surroundings.of_owner(path)
    yield from _tried("disk", lambda: surroundings.of_disks(path, folder, (_log(settings, path).parent,)))
    yield from _tried("ballast", lambda: surroundings.of_ballast(path))
    yield from _tried("backups", lambda: surroundings.of_backups(path, folder, every, now=now))
    yield from _tried("leftovers", lambda: surroundings.of_leftovers(path, folder))


def _of_log(settings: Settings, path: Path | None) -> Iterator[Finding]:
    """How the log of calls stands; a problem where no server can write it."""
    from musicsvc.errors import Damaged
    from musicsvc.store import logbook, soundness, surroundings

    barred = surroundings.of_log(_log(settings, path)) if path is not None else []
    if barred:
        yield from barred
        return
    aside = "A server keeps it aside and begins a new one by itself."
    try:
        wrong = logbook.look(settings.store_url, settings.activity.file)
    except (Damaged, logbook.Outdated) as failure:
        found = soundness.failed("activity log", failure, aside)
        yield soundness.warning(found.check, found.finding, found.way_out)
        return
    except Failure as failure:
        yield soundness.failed("activity log", failure, surroundings.LOG_ELSEWHERE)
        return
    for line in wrong:
        yield soundness.warning("activity log", line, aside)
    if not wrong:
        yield soundness.ok("activity log", "The log of calls is sound, or not begun yet.")
