"""`musicsvc config`: show the effective settings."""

from json import dumps

import typer

from musicsvc import config
from musicsvc.cli import output
from musicsvc.cli.options import AsJson, group
from musicsvc.cli.session import Session
from musicsvc.store.engine.url import without_password

app = group("config show", "config show --json --config /etc/musicsvc.toml")


@app.command()
def show(context: typer.Context, json: AsJson = False) -> None:
    """Show all settings with their values and origins; passwords are masked."""
    session = Session.from_context(context)
    settings = session.settings()
    origins = config.origins(settings, session.config)
    values = {**config.flat(settings), "database_url": settings.store_url}
    found = [{"name": name, "value": _masked(value), "from": origins[name]} for name, value in values.items()]
    if not json:
        found = [row | {"value": _format(row["value"])} for row in found]
    output.print_table(session, found, ("name", "value", "from"), json=json)


def _format(value: object) -> str:
    """Format a value as in an environment variable or in the settings file. Returns an empty text for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)


def _masked(value: object) -> object:
    return without_password(value) if isinstance(value, str) else value
