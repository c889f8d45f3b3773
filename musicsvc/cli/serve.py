"""`musicsvc serve`: run the server, or a demo with sample data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from musicsvc import config, permissions
from musicsvc.cli.options import FileCommand, flag, option, show_examples
from musicsvc.cli.session import Session, option_of
from musicsvc.errors import Failure, NoDatabase, Outdated, Unavailable
from musicsvc.server import serving
from musicsvc.store.engine.url import without_password

app = typer.Typer()
INIT = "Create the database if it is missing, also where a setting names it."
RETRY_SECONDS = 0.5
World = Literal["standard", "empty", "one", "large", "edge"]
WAIT = "The longest wait for the database to accept connections [default: 0]."
WORLDS = "Data of the demo: standard, empty, one, large or edge [default: standard, with --score: edge]."
SCORE = "Watch the clients of the demo, let a few requests fail, and print a report card when it stops."
JUNIT = "Write the report card as JUnit XML, too."
TLS = "--tls-cert cert.pem --tls-key key.pem"


@app.command(
    cls=FileCommand,
    epilog=show_examples(
        "serve --demo",
        "serve --demo --score --junit card.xml",
        "serve --workers 4 --wait-for-database 60",
        f"serve --host 0.0.0.0 --port 8443 {TLS}",
    ),
)
def serve(  # noqa: PLR0917 - typer calls it by name
    session: Session,
    host: Annotated[str | None, option("IP", "Address to listen on [default: 127.0.0.1].")] = None,
    port: Annotated[int | None, option("PORT", "Port; 0 is any free port [default: 8080].", min=0, max=65535)] = None,
    workers: Annotated[int | None, option("N", "Worker processes, 1 to 64 [default: 1].", min=1, max=64)] = None,
    tls_cert: Annotated[Path | None, option("FILE", "TLS certificate chain (PEM).")] = None,
    tls_key: Annotated[Path | None, option("FILE", "Private key of the certificate (PEM).")] = None,
    init: Annotated[bool, flag(INIT, "--init")] = False,
    wait_for_database: Annotated[
        float | None,
        option("SECONDS", WAIT, min=0, max=1e9),
    ] = None,
    demo: Annotated[bool, flag("Serve sample data in a temporary database.", "--demo")] = False,
    now: Annotated[str | None, option("TIME", "Start of the demo's clock, such as 2026-01-31T12:00:00Z.")] = None,
    speed: Annotated[
        float | None, option("FACTOR", "Speed of the demo's clock; 60: one hour a minute.", min=0, max=1e9)
    ] = None,
    world: Annotated[World | None, option("WORLD", WORLDS)] = None,
    score: Annotated[bool, flag(SCORE, "--score")] = False,
    junit: Annotated[Path | None, option("FILE", JUNIT)] = None,
) -> None:
    """Serve the API and its pages."""
    if not demo and (now, speed, world, score) != (None, None, None, False):
        raise typer.BadParameter("--now, --speed, --world and --score are for the demo. Add --demo.")
    if junit is not None and not score:
        raise typer.BadParameter("--junit writes the report card. Add --demo --score.")
    given = (("host", host), ("port", port), ("workers", workers), ("tls_cert", tls_cert), ("tls_key", tls_key))
    options: dict[str, object] = {f"server.{name}": value for name, value in given}
    options |= {"server.init": init or None, "database.wait_timeout": wait_for_database}
    session.demo = demo
    _require_both(session.settings(options).server, options)
    if demo:
        from musicsvc.cli.demo import run
        from musicsvc.cli.scoring import Scoring

        world = world or ("edge" if score else "standard")
        scoring = Scoring(session, world, junit) if score else None
        run(session, options, now, 1.0 if speed is None else speed, world, scoring)
    else:
        _serve(session, options)


def _require_both(server: config.Server, options: dict[str, object]) -> None:
    """Raise BadParameter if an option gives a certificate without its key, or the key without it."""
    for name in ("tls_cert", "tls_key"):
        if options[f"server.{name}"] and None in {server.tls_cert, server.tls_key}:
            raise typer.BadParameter("TLS needs both --tls-cert and --tls-key.", param_hint=option_of(name))


def _serve(session: Session, options: dict[str, object]) -> None:
    def load() -> config.Settings:
        found = session.settings(options)
        if (file := found.activity.file) is not None and file.is_dir():
            raise Failure(f"Setting activity.file: {file} is a folder. Name a file in it, such as {file}/activity.db.")
        return found

    settings = load()

    def check_database() -> None:
        _wait_for_database(session, settings)
        if (created := _open_or_create(settings)) is not None:
            session.echo(f"Created the database {created}")

    def announce(root: str) -> None:
        # Called once the server has started, so that a failed start prints only the error.
        session.settings(options)  # finds the folder for temporary files in a new data folder
        if denied := permissions.denial(settings.temporary_folder, write=True):
            session.echo(f"Warning: large exports and uploads need the data folder. {denied}")
        session.echo(f"musicsvc listens on {root} (API documentation: {root}/docs)")

    serving.serve(settings, session.clock, announce, load, check_database)


def _wait_for_database(session: Session, settings: config.Settings) -> None:
    """Wait until the database accepts connections, for at most `database.wait_timeout`.

    Raises Unavailable if it does not.
    """
    from musicsvc.store import opening  # here, as the supervisor does without it

    clock, seconds = session.clock, settings.database.wait_timeout
    end = clock.monotonic() + seconds
    while seconds:
        try:
            with opening.open_unchecked(settings.store_url) as store:
                return store.read(lambda: None).result()
        except Unavailable as failure:
            if clock.monotonic() > end:
                raise
            session.echo_once(f"Waiting up to {seconds:g} s for the database. {failure.here}")
            time.sleep(RETRY_SECONDS)
        except Failure:
            return None  # it is reported when the server opens the database
    return None


def _open_or_create(settings: config.Settings) -> str | None:
    """Check that the database can be used. Create it if it is missing and may be created; then return its name.

    Raises Failure if it cannot be used.
    """
    from musicsvc.store import opening
    from musicsvc.store.schema import schema

    url, created = settings.store_url, False
    try:
        opening.connect(url).close()
    except (NoDatabase, Outdated) as failure:
        if not settings.creates_database:
            raise
        if isinstance(failure, NoDatabase):
            created = schema.create(settings.direct_url)
        else:  # on PostgreSQL, another process that creates it now may not be done
            schema.await_migrations(settings.direct_url)
        opening.connect(url).close()
    return without_password(url.removeprefix("sqlite:///")) if created else None
