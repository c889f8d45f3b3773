"""`musicsvc doctor`: check the installation and print hints on how to fix problems."""

from collections.abc import Iterator
from dataclasses import asdict

import typer

from musicsvc import config
from musicsvc.cli import output
from musicsvc.cli.options import AsJson
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.server import doctor as checks
from musicsvc.store.doctor import Finding, failed
from musicsvc.wording import quantity

app = typer.Typer()


@app.command()
def doctor(context: typer.Context, json: AsJson = False) -> None:
    """Check the installation and print hints for its problems.

    The server may be running. The exit code is 1 if there is a problem, 0 if there are only warnings.
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
    return asdict(finding) | {"way_out": finding.hint}  # the former name of `hint`, for scripts that use it


def _findings(session: Session) -> Iterator[Finding]:
    try:
        settings = session.settings()
    except Failure as failure:
        yield failed("settings", failure, "Correct the setting; musicsvc config show lists all settings.")
        return
    yield from checks.check(settings, config.file_of(session.config), now=session.clock.now())
