"""`musicsvc db`: the database's schema, soundness and backups."""

from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli import backups, output, users
from musicsvc.cli.output import AsJson
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.wording import escape_controls

if TYPE_CHECKING:
    from musicsvc.config import Settings

app = typer.Typer(help="The database: schema, soundness, backups.", no_args_is_help=True)


@app.command()
def upgrade(
    context: typer.Context,
    backup: Annotated[bool, typer.Option(help="Back up a SQLite database first.")] = True,
    json: AsJson = False,
) -> None:
    """Bring the database to the newest schema, and list accounts that share a mailbox.

    Nothing else may use a SQLite database meanwhile.
    """
    session = Session.from_context(context)
    migrations, saved = backups.upgraded(session, backup=backup)
    session.create_activity_log()
    session.echo(f"Applied: {', '.join(migrations)}." if migrations else "The schema is the newest already.")
    shared = users.report_shared_mailboxes(session)
    if json:
        output.print_json({"migrations": migrations, "backup": saved, "shared_mailboxes": shared})


@app.command()
def check(context: typer.Context, json: AsJson = False) -> None:
    """Check integrity, foreign keys, and the schema against the program; exit 1 where something is wrong."""
    session = Session.from_context(context)
    settings = session.settings()
    try:
        problems = _problems(settings)
    except Failure as failure:
        if json:
            output.print_json({"ok": False, "problems": [failure.here]})
        raise
    if json:
        output.print_json({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            typer.echo(escape_controls(problem))
    session.echo(f"{len(problems)} problems found." if problems else "The database is sound.")
    if problems:
        raise typer.Exit(1)


def _problems(settings: "Settings") -> list[str]:
    """What is wrong, a line each. Raises Failure where the database cannot even be looked at."""
    from musicsvc.store.activity import log as activity_log
    from musicsvc.store.opening import open_unchecked
    from musicsvc.store.schema import schema

    with open_unchecked(settings.store_url) as store:
        schema.require_current(store)
        problems = store.read(schema.problems).result()
    return problems + activity_log.check(settings.store_url, settings.activity.file)


app.command()(backups.backup)
app.command()(backups.restore)
