"""`serve`: the server, and the demo that a developer of a client tries first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli.session import Session

if TYPE_CHECKING:
    from musicsvc.config import Settings

app = typer.Typer()


@app.command()
def serve(  # noqa: PLR0917 - typer calls it by name
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on [default: 127.0.0.1].")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on [default: 8080].", min=0, max=65535)] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that answer [default: 1].", min=1, max=64)] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate chain (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Private key (PEM).")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="A database of its own with fixtures and a token.")] = False,
    now: Annotated[str | None, typer.Option(help="Where the demo's clock starts (ISO 8601).")] = None,
    speed: Annotated[float | None, typer.Option(help="How fast the demo's clock runs.", min=0, max=1e9)] = None,
) -> None:
    """Serve the API."""
    if not demo and (now is not None or speed is not None):
        raise typer.BadParameter("--now and --speed move the clock of --demo only.")
    session = Session.from_context(context)
    given: dict[str, object] = {
        "host": host,
        "port": port,
        "workers": workers,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
    }
    options: dict[str, object] = {f"server.{name}": value for name, value in given.items()}
    if demo:
        from musicsvc.cli.demo import run

        run(session, options, now, 1.0 if speed is None else speed)
    else:
        _serve(session, options)


def _serve(session: Session, options: dict[str, object]) -> None:
    from musicsvc.server import serving

    settings = session.settings(options)
    made = _made_database(settings)

    def announce(root: str) -> None:
        # Not before the server listens: what keeps it from that is told in one line.
        if made is not None:
            session.echo(f"Made the database {made}")
        session.echo(f"musicsvc listens on {root}")

    serving.serve(settings, session.clock, announce)


def _made_database(settings: Settings) -> Path | None:
    """The embedded database, where there was none and it is made now; one of another schema is refused on opening."""
    from musicsvc.store.engine.sqlite import files
    from musicsvc.store.schema import schema

    if not settings.store_url.startswith("sqlite:///"):
        return None
    path = Path(settings.store_url.removeprefix("sqlite:///"))
    if path.exists():
        return None
    files.create(path)
    schema.upgrade(settings.store_url)
    return path
