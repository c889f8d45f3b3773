"""`serve --demo`: a database of its own, fixtures, an account with access, its token, and a clock that can be moved."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from musicsvc import config
from musicsvc.clock import Clock, MovableClock, parse
from musicsvc.server import serving
from musicsvc.store import database, fixtures, schema, sqlite_files, tokens, users

if TYPE_CHECKING:
    from musicsvc.cli.session import Session

TOKEN_NAME = "demo"  # noqa: S105 - the name, not the value


def run(session: Session, options: dict[str, object], now: str | None, speed: float) -> None:
    """Serve the demo until it is told to stop; its database goes with it."""
    if options.get("server.workers") not in {None, 1}:
        raise typer.BadParameter("--demo runs in one process.")
    clock = _clock(now, speed)
    with tempfile.TemporaryDirectory(prefix="musicsvc-demo-") as folder:
        url = f"sqlite:///{Path(folder) / 'musicsvc.db'}"
        more = {"database_url": url, "registration.grants_access": True}
        settings = config.load(session.config, options | more)
        token = _prepare(url, clock.now())
        serving.serve(settings, clock, lambda root: _announce(session, root, token))


def _clock(now: str | None, speed: float) -> Clock:
    try:
        start = Clock().now() if now is None else parse(now)
    except ValueError:
        raise typer.BadParameter("--now takes a time such as 2026-01-31T12:00:00Z.") from None
    return MovableClock(start, speed)


def _prepare(url: str, now: int) -> str:
    """Fill a new database; the demo account's token."""
    sqlite_files.create(Path(url.removeprefix("sqlite:///")))
    schema.upgrade(url)
    with database.connect(url) as store:
        store.write(lambda: fixtures.load(now=now)).result()
        return store.write(lambda: tokens.create(users.by_email(fixtures.DEMO_EMAIL), TOKEN_NAME, now=now)[1]).result()


def _announce(session: Session, root: str, token: str) -> None:
    session.say(f"A demo with its own database; it is gone when you stop it (Ctrl+C). Documentation: {root}/docs")
    session.say(f"Your token, as {fixtures.DEMO_EMAIL}: {token}")
    session.say("Try:")
    typer.echo(f'curl -H "Authorization: Bearer {token}" {root}/api/v1/albums')
