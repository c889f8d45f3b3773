"""`musicsvc fingerprint`: set the fingerprint status of tracks."""

from typing import Annotated, Literal

import typer

from musicsvc.cli import output
from musicsvc.cli.options import AsJson, group, row
from musicsvc.cli.session import Session
from musicsvc.store.catalog import tracks

app = group(
    "fingerprint set 7 processing",
    "fingerprint set 7 completed --json",
)


Status = Literal["pending", "processing", "completed", "failed"]


@app.command("set")
def set_(
    context: typer.Context,
    track_id: Annotated[int, row("track", "TRACK_ID")],
    status: Annotated[Status, typer.Argument(metavar="STATUS", help="pending, processing, completed or failed.")],
    json: AsJson = False,
) -> None:
    """Set the status of a track's fingerprint.

    The order is pending, processing, completed or failed; failed can be set back to pending.
    """
    session = Session.from_context(context)
    session.write(lambda: tracks.set_fingerprint_status(track_id, status))
    result = {"track_id": track_id, "fingerprint_status": status}
    output.print_result(session, f"The fingerprint of track {track_id} is {status}.", result, json=json)
