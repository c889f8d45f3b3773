"""`musicsvc db`: the database's schema and soundness."""

import typer

from musicsvc.cli import output
from musicsvc.cli.output import Json
from musicsvc.cli.session import Session

app = typer.Typer(help="The database: its schema and its soundness.", no_args_is_help=True)


@app.command()
def upgrade(context: typer.Context, json: Json = False) -> None:
    """Bring the database to the newest schema."""
    from musicsvc.store import schema

    session = Session.of(context)
    migrations = schema.upgrade(session.settings().store_url)
    session.say(f"Applied: {', '.join(migrations)}." if migrations else "The schema is the newest already.")
    if json:
        output.value({"migrations": migrations})


@app.command()
def check(context: typer.Context, json: Json = False) -> None:
    """Check integrity, foreign keys, and the schema against the program; exit 1 where something is wrong."""
    from musicsvc.store import schema
    from musicsvc.store.database import open_unchecked

    session = Session.of(context)
    with open_unchecked(session.settings().store_url) as store:
        schema.require_current(store)
        problems = store.read(schema.problems).result()
    if json:
        output.value({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            typer.echo(output.plain(problem))
    session.say(f"{len(problems)} problems found." if problems else "The database is sound.")
    if problems:
        raise typer.Exit(1)
