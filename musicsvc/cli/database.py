"""`musicsvc init` and `musicsvc db`: create, upgrade, check, back up, restore, copy and compare databases."""

from __future__ import annotations

from typing import Annotated

import typer

from musicsvc import config
from musicsvc.cli import backups, copying, output
from musicsvc.cli.options import FileCommand, flag, group
from musicsvc.cli.session import Session
from musicsvc.errors import Damaged, Failure
from musicsvc.store import opening
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine import list_blocks, name_index
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.url import path_of, without_password
from musicsvc.store.schema import history, schema
from musicsvc.wording import escape_controls, quantity

init_app = typer.Typer()
app = group(
    "db backup /srv/backups/",
    "db restore /srv/backups/musicsvc.db --yes",
    "db copy /srv/musicsvc.db postgresql:///musicsvc",
)


@init_app.command()
def init(session: Session) -> None:
    """Create the data folder and the database, or upgrade its schema. Safe to repeat."""
    url = session.settings().store_url
    if path := path_of(url):
        files.create(path)
    migrations, saved = backups.upgrade(session)
    created = history.BASELINE in migrations
    session.create_activity_log()
    with session.store() as store:
        warning = store.reserve_space()
    place = without_password(url)
    if migrations:
        session.echo(f"{'Created' if created else 'Upgraded the schema of'} the database {place}.")
    else:
        session.echo(f"The database {place} exists already and its schema is up to date.")
    if warning:
        session.echo(warning)
    if session.json:
        output.print_json({"database_url": place, "created": created, "migrations": migrations, "backup": saved})


@app.command()
def upgrade(
    session: Session,
    backup: Annotated[bool, typer.Option(help="Back up a SQLite database first.")] = True,
    dry_run: Annotated[
        bool, flag("Show what it would do and how long it takes, and change nothing.", "--dry-run")
    ] = False,
) -> None:
    """Upgrade the schema of the database. If the database is SQLite, stop the server first."""
    if dry_run:
        backups.rehearse(session, backup=backup)
        return
    migrations, saved = backups.upgrade(session, backup=backup)
    session.create_activity_log()
    session.echo(f"Applied: {', '.join(migrations)}." if migrations else "The schema is up to date.")
    if session.json:
        output.print_json({"migrations": migrations, "backup": saved})


@app.command()
def check(session: Session) -> None:
    """Check integrity, schema and counts of the database; exit with 1 if a problem is found."""
    settings = session.settings()
    try:
        problems = _problems(settings)
    except Failure as failure:
        if session.json:
            output.print_json({"ok": False, "problems": [failure.here]})
        raise
    if session.json:
        output.print_json({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            typer.echo(escape_controls(problem))
    session.echo(
        f"Found {quantity(len(problems), 'problem')}. See docs/recover.md." if problems else "No problems found."
    )
    if problems:
        raise typer.Exit(1)


@app.command(cls=FileCommand)
def recount(session: Session) -> None:
    """Repair the lengths of lists and the search indexes that `db check` reports."""
    session.write(list_blocks.rebuild)
    session.write(name_index.rebuild)
    session.echo("Recounted all long lists and rebuilt the search indexes.")


def _problems(settings: config.Settings) -> list[str]:
    """Return one line per problem of the database or the activity log. Raises Failure if either cannot be opened."""
    with opening.open_unchecked(settings.store_url) as store:
        try:
            schema.require_current(store)
            problems = store.read(schema.problems).result()
        except Damaged:
            problems = ["integrity: the database is damaged. Restore a backup: musicsvc db restore FILE"]
    return problems + activity_log.check(settings.store_url, settings.activity.file)


app.command()(backups.backup)
app.command()(backups.restore)
app.command()(copying.copy)
app.command()(copying.compare)
