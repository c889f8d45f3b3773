"""`musicsvc doctor`: check the installation and print hints on how to fix problems."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from musicsvc.cli import output
from musicsvc.cli.options import AsJson
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.store.engine.url import without_password
from musicsvc.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from musicsvc.config import Settings
    from musicsvc.store.doctor.finding import Finding

app = typer.Typer()


@app.command()
def doctor(context: typer.Context, json: AsJson = False) -> None:
    """Check the installation and print hints for its problems.

    The server may run meanwhile. Problems exit with 1, warnings with 0.
    """
    session = Session.from_context(context)
    found = list(_findings(session))
    problems = sum(finding.level == "problem" for finding in found)
    if json:
        output.print_json({"ok": not problems, "findings": [_json(finding) for finding in found]})
    else:
        rows = [asdict(finding) for finding in found]
        output.print_table(session, rows, ("level", "check", "finding", "hint"), json=False)
    warnings = sum(finding.level == "warning" for finding in found)
    session.echo(f"Found {quantity(problems, 'problem')} and {quantity(warnings, 'warning')}.")
    if problems:
        raise typer.Exit(1)


def _json(finding: Finding) -> dict[str, str]:
    row = asdict(finding)
    return row | {"way_out": row.pop("hint")}


def _findings(session: Session) -> Iterator[Finding]:
    from musicsvc.server import doctor as network
    from musicsvc.store.doctor import database, files
    from musicsvc.store.doctor.finding import failed
    from musicsvc.store.engine.url import path_of

    try:
        settings = session.settings()
    except Failure as failure:
        yield failed("settings", failure, "Correct it; musicsvc config show lists all settings.")
        return
    now = session.clock.now()
    path = path_of(settings.store_url)
    yield database.check_clock(now)
    found = database.check_database(settings.store_url, now=now)
    yield from found
    if path is not None or not any(finding.check == "database" for finding in found):
        yield from _of_log(settings, path)
    yield from _attempt("permissions", lambda: files.check_permissions(*_private_files(session, settings, path)))
    if path is not None:
        yield from _of_files(settings, path, now)
    yield from _attempt("TLS", lambda: network.check_tls(settings.server, now=now))
    yield from network.check_settings(settings)
    yield network.check_open_files(settings)


def _attempt(check: str, run_check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check and return its results. If the check raises an error, return the error as a result of `check`."""
    from musicsvc.store.doctor.finding import failed

    try:
        return list(run_check())
    except Failure as failure:
        return [failed(check, failure)]
    except OSError as error:
        return [failed(check, Failure(f"{error.filename}: {error.strerror}."))]


def _private_files(session: Session, settings: Settings, path: Path | None) -> tuple[list[Path], list[Path]]:
    """Return the files and the folders that other users of the system should not be able to read."""
    from musicsvc import config
    from musicsvc.store.backups import folder as backup_folder

    secrets = [] if settings.server.tls_key is None else [settings.server.tls_key]
    if without_password(settings.database_url) != settings.database_url:
        secrets.append(config.file_of(session.config))
    if path is None:
        return secrets, []
    secrets += [path, path.with_name(path.name + "-wal"), _log(settings, path)]
    secrets += [entry.file for entry in backup_folder.entries(settings.backup_folder)]
    return secrets, [path.parent, settings.backup_folder]


def _log(settings: Settings, path: Path) -> Path:
    from musicsvc.store.activity import log_file

    return settings.activity.file or log_file.default_file(path)


def _of_files(settings: Settings, path: Path, now: int) -> Iterator[Finding]:
    """Yield the results of the checks of a SQLite installation: database file, disk space and backups."""
    from musicsvc.store.doctor import files

    folder = settings.backup_folder
    every = settings.backups.every_hours
    yield from files.check_writable(path)
    yield from _attempt("disk", lambda: files.check_disks(path, folder, (_log(settings, path).parent,)))
    yield from _attempt("ballast", lambda: files.check_reserved_space(path))
    yield from _attempt("backups", lambda: files.check_backups(path, folder, every, now=now))
    yield from _attempt("leftovers", lambda: files.check_leftovers(path, folder))


def _of_log(settings: Settings, path: Path | None) -> Iterator[Finding]:
    """Yield the results of the checks of the activity log."""
    from musicsvc.errors import Damaged
    from musicsvc.store.activity import log as activity_log
    from musicsvc.store.activity import log_store
    from musicsvc.store.doctor import files
    from musicsvc.store.doctor.finding import failed, ok, warning

    unwritable = files.check_log_file(_log(settings, path)) if path is not None else []
    if unwritable:
        yield from unwritable
        return
    hint = "The server keeps it under another name and creates a new one."
    try:
        wrong = activity_log.problems(settings.store_url, settings.activity.file)
    except (Damaged, log_store.Outdated) as failure:
        found = failed("activity log", failure, hint)
        yield warning(found.check, found.finding, found.hint)
        return
    except Failure as failure:
        yield failed("activity log", failure, files.LOG_HINT)
        return
    for line in wrong:
        yield warning("activity log", line, hint)
    if not wrong:
        yield ok("activity log", "The activity log has no problems, or does not exist yet.")
