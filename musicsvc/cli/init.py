"""`musicsvc init`: the data folder and the database."""

from pathlib import Path

import typer

from musicsvc.cli import backups, output, users
from musicsvc.cli.output import AsJson
from musicsvc.cli.session import Session
from musicsvc.store.engine.url import without_password

app = typer.Typer()


@app.command()
def init(context: typer.Context, json: AsJson = False) -> None:
    """Make the data folder and the database, at the newest schema. Harmless when repeated."""
    session = Session.from_context(context)
    url = session.settings().store_url
    made = False
    if url.startswith("sqlite:///"):
        from musicsvc.store.engine.sqlite import files

        path = Path(url.removeprefix("sqlite:///"))
        made = not path.exists()
        files.create(path)
    migrations, saved = backups.upgraded(session)
    session.create_activity_log()
    with session.store() as store:
        wanting = store.reserve_space()
    place = without_password(url)
    if migrations:
        session.echo(f"The database {place} is {'made' if made else 'brought to the newest schema'}.")
    else:
        session.echo(f"The database {place} is there already, at the newest schema.")
    if wanting:
        session.echo(wanting)
    shared = users.report_shared_mailboxes(session)
    if json:
        output.print_json(
            {
                "database_url": place,
                "created": made,
                "migrations": migrations,
                "backup": saved,
                "shared_mailboxes": shared,
            }
        )
