"""`musicsvc fingerprint`: what an operator tells of a track's fingerprint."""

from enum import StrEnum
from typing import Annotated

import typer

from musicsvc.cli import output
from musicsvc.cli.output import AsJson
from musicsvc.cli.session import Session

app = typer.Typer(help="The status of tracks' fingerprints.", no_args_is_help=True)

LARGEST_ID = 2**63 - 1


class Status(StrEnum):
    """What a fingerprint can be."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


@app.callback()
def _group() -> None:
    """Keep `set` a command of its own."""


@app.command("set")
def set_(
    context: typer.Context,
    track_id: Annotated[int, typer.Argument(metavar="TRACK_ID", min=1, max=LARGEST_ID, help="The track's id.")],
    status: Annotated[Status, typer.Argument(help="Where it moves.")],
    json: AsJson = False,
) -> None:
    """Move a track's fingerprint: pending → processing → completed or failed; failed → pending to try again."""
    from musicsvc.store.catalog import fingerprints

    session = Session.from_context(context)
    session.write(lambda: fingerprints.set_status(track_id, status.value))
    session.echo(f"The fingerprint of track {track_id} is {status}.")
    if json:
        output.print_json({"track_id": track_id, "fingerprint_status": status.value})
