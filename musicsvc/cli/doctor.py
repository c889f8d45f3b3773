"""`musicsvc doctor` and `musicsvc config`: check the installation, with hints for its problems; show the settings."""

from collections.abc import Iterator
from dataclasses import asdict
from json import dumps

import typer

from musicsvc import config
from musicsvc.cli import output
from musicsvc.cli.options import group
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.server import doctor as checks
from musicsvc.store.doctor import Finding, failed
from musicsvc.store.engine.url import without_password
from musicsvc.wording import quantity

app = typer.Typer()
settings_app = group("config show", "config show --json --config /etc/musicsvc.toml")


@app.command()
def doctor(session: Session) -> None:
    """Check the installation and print hints for its problems.

    The server may be running. The exit code is 1 if there is a problem, 0 if there are only warnings.
    """
    found = list(_findings(session))
    problems = sum(finding.level == "problem" for finding in found)
    if session.json:
        # `way_out` is the former name of `hint`, for scripts that use it.
        findings = [asdict(finding) | {"way_out": finding.hint} for finding in found]
        output.print_json({"ok": not problems, "findings": findings})
    else:
        rows = [asdict(finding) for finding in found]
        output.print_table(session, rows, ("level", "check", "finding", "hint"), prose=True)
    warnings = sum(finding.level == "warning" for finding in found)
    session.echo(f"Found {quantity(problems, 'problem')} and {quantity(warnings, 'warning')}.")
    if problems:
        raise typer.Exit(1)


def _findings(session: Session) -> Iterator[Finding]:
    try:
        settings = session.settings()
    except Failure as failure:
        yield failed("settings", failure, "Correct what it names. After that, musicsvc config show lists all settings.")
        return
    yield from checks.check(settings, config.file_of(session.config), now=session.clock.now())


@settings_app.command()
def show(session: Session) -> None:
    """Show all settings with their values and origins; passwords are masked."""
    settings = session.settings()
    origins = config.origins(settings, session.config)
    values = {**config.flat(settings), "database_url": settings.store_url}
    masked = {name: without_password(value) if isinstance(value, str) else value for name, value in values.items()}
    found = [{"name": name, "value": value, "from": origins[name]} for name, value in masked.items()]
    if not session.json:
        found = [row | {"value": _format(row["value"])} for row in found]
    output.print_table(session, found, ("name", "value", "from"))


def _format(value: object) -> str:
    """Format a value as in an environment variable or in the settings file. Returns an empty text for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)
