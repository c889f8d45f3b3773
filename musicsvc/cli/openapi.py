"""`musicsvc openapi`: print the OpenAPI document."""

from __future__ import annotations

import typer

from musicsvc import networks
from musicsvc.cli import output
from musicsvc.cli.options import AsJson
from musicsvc.cli.session import Session
from musicsvc.server.openapi import document

app = typer.Typer()


@app.command()
def openapi(context: typer.Context, json: AsJson = False) -> None:  # noqa: ARG001 - the document is JSON either way
    """Print the OpenAPI 3.1 document."""
    output.print_json(document.document(networks.root_url(Session.from_context(context).settings().server)))
