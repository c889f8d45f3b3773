"""`musicsvc openapi`: print the OpenAPI document."""

import typer

from musicsvc.cli import output
from musicsvc.cli.options import AsJson
from musicsvc.cli.session import Session

app = typer.Typer()


@app.command()
def openapi(context: typer.Context, json: AsJson = False) -> None:  # noqa: ARG001 - the document is JSON either way
    """Print the OpenAPI 3.1 document."""
    from musicsvc.networks import root_url
    from musicsvc.server.openapi import document as openapi

    output.print_json(openapi.document(root_url(Session.from_context(context).settings().server)))
