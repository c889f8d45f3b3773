"""`musicsvc openapi`: print the OpenAPI document."""

from __future__ import annotations

import typer

from musicsvc import networks
from musicsvc.cli import output
from musicsvc.cli.session import Session
from musicsvc.server.openapi import document

app = typer.Typer()


@app.command()
def openapi(session: Session) -> None:
    """Print the OpenAPI 3.1 document."""
    output.print_json(document.document(networks.root_url(session.settings().server)))
