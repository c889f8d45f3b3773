"""`musicsvc db backup` and `musicsvc db restore`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from musicsvc import config
from musicsvc.cli import output, progress
from musicsvc.cli.options import Yes, argument, named
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.server.request import executors
from musicsvc.store import opening
from musicsvc.store.backups import create, rehearsal
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.backups import restore as restore_backup
from musicsvc.store.engine.sqlite import file_locks, files
from musicsvc.store.engine.url import path_of
from musicsvc.store.schema import history, schema
from musicsvc.wording import quantity

Place = Annotated[
    str | None,  # not a Path, which would lose a trailing slash
    typer.Argument(
        metavar="FILE|FOLDER",
        help="The file to write, or its folder [default: a new file in backups.folder].",
        show_default=False,
        parser=named,
    ),
]
Source = Annotated[Path, argument("FILE", "The backup to restore.")]


def backup(session: Session, place: Place = None) -> None:
    """Back up the SQLite database, also while the server runs.

    The backup gets its final name only after it was verified.
    """
    settings = session.settings()
    path = create.database_file(settings.store_url)
    given = None if place is None else Path(place)
    if place is not None and place.endswith("/") and not Path(place).is_dir():
        raise Failure(f"There is no folder {place}. Create it, or name another folder.")
    files.examine(path)
    began = session.clock.monotonic()
    executors.lower_priority()
    use = file_locks.use(path)
    try:
        with progress.bar(session, "backup") as on_progress:
            made = create.create(path, target(settings, given, session.clock.now()), on_progress)
    finally:
        use.release()
    seconds = session.clock.monotonic() - began
    schema = max(made.facts.migrations, default=None)
    result = {"file": str(made.file), "bytes": made.size, "rows": made.facts.rows, "schema": schema}
    result["seconds"] = round(seconds, 3)
    output.print_result(session, f"{describe(made)}, in {seconds:.1f} s.", result)


def target(settings: config.Settings, place: Path | None, now: int, kind: str = "") -> Path:
    """Return the path for a new backup: `place`, or a new file in the folder `place` (default: the backup folder)."""
    if place is not None and not place.is_dir():
        return place
    folder = place or settings.backup_folder
    backup_folder.prepare(folder)
    return backup_folder.new_name(folder, now, kind)


def upgrade(session: Session, *, backup: bool = True) -> tuple[list[str], str | None]:
    """Upgrade the schema, after a backup if `backup`. Return the applied migrations, and the backup's path or None."""
    settings = session.settings()
    path = path_of(settings.store_url)
    saved: list[Path] = []

    def save(first: str) -> None:
        if path is None:
            session.echo("No backup was made: back up a PostgreSQL database with pg_dump.")
        elif backup:
            try:
                made = create.create(path, target(settings, None, session.clock.now(), f"before-{first}"))
            except Failure as failure:
                remedy = "Nothing was migrated. To upgrade without a backup, run: musicsvc db upgrade --no-backup"
                raise Failure(f"{failure.message} {remedy}") from None
            session.echo(f"{describe(made)}.")
            saved.append(made.file)

    with progress.bar(session, "upgrade") as on_progress:
        migrations = schema.upgrade(settings.direct_url, save, on_progress, session.migrations)
    return migrations, str(saved[0]) if saved else None


def rehearse(session: Session, *, backup: bool) -> None:
    """Print what an upgrade would do and how long it takes."""
    settings = session.settings()
    path = path_of(settings.store_url)
    with opening.open_unchecked(settings.store_url) as store:
        plan = rehearsal.plan(store, session.migrations)
        if not plan.migrations:
            cost = rehearsal.Cost()
        elif path is None:
            cost = rehearsal.estimate(store, plan)
        else:
            place = target(settings, None, session.clock.now(), "dry-run")
            with progress.bar(session, "dry run") as on_progress:
                cost = rehearsal.measure(path, plan, place, session.clock, on_progress)
    folder = settings.backup_folder if path is not None and backup and plan.schema and plan.migrations else None
    seconds = round(cost.seconds + (cost.backup if folder else 0.0), 3)
    for line in _described(plan, cost, folder, seconds, measured=path is not None):
        session.echo(line)
    if session.json:
        output.print_json(
            {
                "schema": plan.schema,
                "migrations": plan.migrations,
                "oldest_program": plan.oldest_program,
                "backup": None if folder is None else str(folder),
                "bytes": cost.size,
                "tables": list(cost.tables),
                "seconds": seconds,
                "measured": path is not None,
            }
        )


def _described(
    plan: rehearsal.Plan, cost: rehearsal.Cost, folder: Path | None, seconds: float, *, measured: bool
) -> Iterator[str]:
    """Yield the lines that say what an upgrade would do."""
    if not plan.migrations:
        yield f"The schema is up to date ({plan.schema}): nothing would be done."
        return
    yield f"Would apply: {', '.join(plan.migrations)}."
    size = f"{cost.size / 1e6:,.1f} MB"
    if folder is not None:
        yield f"Before that, it would back up the database ({size}) to {folder}."
    elif not measured:
        yield "It would make no backup: back up a PostgreSQL database with pg_dump before."
    yield f"Programs of version {plan.oldest_program} and later work on its schema; older ones refuse it."
    if measured:
        yield f"It takes about {seconds:.1f} s, as on a copy of the database, which was deleted again."
    else:
        rows = f"all rows of the tables that it names ({', '.join(cost.tables) or 'none'}, {size})"
        yield f"It takes about {seconds:.0f} s if it changes {rows}; this was not measured."
    yield "Nothing was changed."


def describe(made: create.Backup) -> str:
    return f"Backed up {quantity(made.facts.rows, 'row')} ({made.size / 1e6:,.1f} MB) to {made.file}"


def restore(
    session: Session,
    file: Source,
    yes: Yes = False,
    keep: Annotated[bool, typer.Option(help="Keep the replaced database, beside the restored one.")] = True,
) -> None:
    """Replace the SQLite database with a backup. Stop the server first."""
    path = create.database_file(session.settings().store_url)
    if file.is_dir():
        raise Failure(f"{file} is a folder. Name a backup file in it.")
    if not file.is_file():
        raise Failure(f"There is no file {file}. Name a backup file.")
    if path.exists() and not yes:
        question = f"Replace the database {path} with {file}? Changes made after the backup are lost."
        session.confirm(f"replaces the database {path}", question)
    with progress.bar(session, "restore") as on_progress:
        done = restore_backup.restore(file, path, now=session.clock.now(), keep=keep, on_progress=on_progress)
    older = bool(history.missing(done.facts.migrations, session.migrations))
    _report(session, path, file, done, older=older)
    if session.json:
        output.print_json(
            {
                "database": str(path),
                "restored": str(file),
                "rows": done.facts.rows,
                "schema": max(done.facts.migrations),
                "current": not older,
                "kept": None if done.kept is None else str(done.kept),
                "valid_again": None if done.regained is None else asdict(done.regained),
            }
        )


def _report(session: Session, path: Path, file: Path, done: restore_backup.RestoreResult, *, older: bool) -> None:
    session.echo(f"Restored {quantity(done.facts.rows, 'row')} from {file} to {path}.")
    if done.kept is not None:
        session.echo(f"The replaced database is kept as {done.kept}")
    if older:
        session.echo(f"Its schema is older ({max(done.facts.migrations)}). Run: musicsvc db upgrade")
    if done.regained is None:
        session.echo("Tokens and rights are those of the backup. Repeat the revocations made since then.")
        return
    if done.regained.tokens or done.regained.accounts:
        tokens = ", ".join(map(str, done.regained.tokens)) or "none"
        accounts = ", ".join(done.regained.accounts) or "none"
        session.echo(f"Valid again, although revoked after the backup: tokens {tokens}; rights of {accounts}.")
        session.echo("Repeat the revocations with: musicsvc token revoke, access revoke, user suspend.")
    if done.regained.share_links:
        links = ", ".join(f"{link.id} of {link.account}" for link in done.regained.share_links)
        session.echo(f"These share links work again, although ended after the backup: {links}.")
        session.echo("Their owners can end them on the page /settings.")
    if done.regained.deleted_accounts:
        session.echo(f"These accounts were deleted after the backup: {', '.join(done.regained.deleted_accounts)}.")
        session.echo("Delete them again with: musicsvc user delete.")
    if done.regained.erased_listeners:
        session.echo(f"These listeners were erased after the backup: {', '.join(done.regained.erased_listeners)}.")
        session.echo("Erase them again with: musicsvc listener erase.")
