"""`musicsvc openapi`: the API's description."""

import typer

from musicsvc.cli import output

app = typer.Typer()


@app.command()
def openapi() -> None:
    """Print the OpenAPI 3.1 document."""
    from musicsvc.server import openapi

    output.value(openapi.document())
