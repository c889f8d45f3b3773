"""`musicsvc init`: create the data folder and the database."""

from pathlib import Path

import typer

from musicsvc.cli import backups, output
from musicsvc.cli.options import AsJson
from musicsvc.cli.session import Session
from musicsvc.store.engine.url import without_password

app = typer.Typer()


@app.command()
def init(context: typer.Context, json: AsJson = False) -> None:
    """Create the data folder and the database, or upgrade its schema. Safe to repeat."""
    session = Session.from_context(context)
    url = session.settings().store_url
    created = False
    if url.startswith("sqlite:///"):
        from musicsvc.store.engine.sqlite import files

        path = Path(url.removeprefix("sqlite:///"))
        created = not path.exists()
        files.create(path)
    migrations, saved = backups.upgrade(session)
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
    if json:
        output.print_json({"database_url": place, "created": created, "migrations": migrations, "backup": saved})
