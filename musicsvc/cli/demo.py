"""`musicsvc serve --demo`: a temporary database with sample data, a token, and an adjustable clock."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from musicsvc.clock import Clock, MovableClock, parse
from musicsvc.server import serving
from musicsvc.store import opening
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import schema
from musicsvc.store.seeding import fixtures, plays

if TYPE_CHECKING:
    from musicsvc.cli.session import Session

DEMO = {"registration.grants_access": True, "server.workers": 1, "backups.every_hours": 0}


def run(session: Session, options: dict[str, object], now: str | None, speed: float) -> None:
    """Run the demo server until it is stopped, then delete its database. `now` and `speed` set the demo's clock."""
    if options.get("server.workers") not in {None, 1}:
        raise typer.BadParameter("--demo runs in one process. Remove --workers.")
    start = _start(now)
    clock = MovableClock(start, speed)
    with tempfile.TemporaryDirectory(prefix="musicsvc-demo-") as folder:
        url, log = f"sqlite:///{Path(folder) / 'musicsvc.db'}", Path(folder) / "activity.db"
        settings = session.settings(options | DEMO | {"database_url": url, "activity.file": log})
        token = _prepare(url, start)

        def announce(root: str) -> None:
            # Start the clock only now, so that the token does not expire while the sample data is loaded.
            clock.restart()
            _announce(session, root, token)

        serving.serve(settings, clock, announce)


def _start(now: str | None) -> int:
    try:
        start = Clock().now() if now is None else parse(now)
    except ValueError:
        start = -1
    if start < 0:
        raise typer.BadParameter(f"--now {now} is not a time since 1970, such as 2026-01-31T12:00:00Z.")
    return start


def _prepare(url: str, now: int) -> str:
    """Create the database with sample data. Return the access token of the demo account."""
    files.create(Path(url.removeprefix("sqlite:///")))
    schema.upgrade(url)
    with opening.connect(url) as store:
        token = store.write(lambda: fixtures.load(now=now)).result().tokens["demo"]
        store.write(lambda: plays.load(now=now)).result()
        return token


def _announce(session: Session, root: str, token: str) -> None:
    session.echo(f"The demo has a temporary database, deleted when you stop it (Ctrl+C). Documentation: {root}/docs")
    session.echo(f"Token of {fixtures.DEMO_EMAIL}: {token}")
    session.echo("Try:")
    typer.echo(f'curl -H "Authorization: Bearer {token}" {root}/api/v1/albums')
