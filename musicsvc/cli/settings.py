"""`musicsvc config`: the effective settings."""

from json import dumps

import typer

from musicsvc.cli import output
from musicsvc.cli.output import AsJson
from musicsvc.cli.session import Session
from musicsvc.store.engine.url import without_password

app = typer.Typer(help="The settings.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `show` a command of its own, for a group of one would be that one."""


@app.command()
def show(context: typer.Context, json: AsJson = False) -> None:
    """Show every setting, its value as a variable takes it, and where it comes from; passwords are masked."""
    from musicsvc import config

    session = Session.from_context(context)
    settings = session.settings()
    origins = config.origins(settings, session.config)
    values = {**config.flat(settings), "database_url": settings.store_url}
    found = [{"name": name, "value": _masked(value), "from": origins[name]} for name, value in values.items()]
    if not json:
        found = [row | {"value": _written(row["value"])} for row in found]
    output.print_table(session, found, ("name", "value", "from"), json=json)


def _written(value: object) -> str:
    """Return the value as a variable or the settings file takes it; empty where nothing is set."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)


def _masked(value: object) -> object:
    return without_password(value) if isinstance(value, str) else value
