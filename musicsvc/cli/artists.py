"""`musicsvc artist`: set the manager and the verified badge of artists."""

from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli import output
from musicsvc.cli.command import group
from musicsvc.cli.options import AsJson, Email, identifier
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session

if TYPE_CHECKING:
    from musicsvc.store.catalog.artists import ArtistRow

app = group(
    "Assign managers to artists, and verify artists.",
    "artist assign 7 ada@example.test",
    "artist verify 7",
    "artist verify 7 --undo",
)

ArtistId = Annotated[int, identifier("artist", "ARTIST_ID")]


@app.command()
def assign(context: typer.Context, artist_id: ArtistId, email: Email = "", json: AsJson = False) -> None:
    """Make an account the manager of an artist, instead of the former manager."""
    from musicsvc.store.accounts import users
    from musicsvc.store.catalog import artists

    session = Session.from_context(context)
    artist = session.write(lambda: artists.assign(artist_id, users.by_email(email)))
    message = f"{artist.name} (artist {artist.id}) is managed by {email}."
    output.print_result(session, message, artist_json(artist), json=json)


@app.command()
def verify(
    context: typer.Context,
    artist_id: ArtistId,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the verified badge.")] = False,
    json: AsJson = False,
) -> None:
    """Give an artist the verified badge."""
    from musicsvc.store.catalog import artists

    session = Session.from_context(context)
    artist = session.write(lambda: artists.verify(artist_id, verified=not undo))
    state = "verified" if artist.verified else "not verified"
    output.print_result(session, f"{artist.name} (artist {artist.id}) is {state}.", artist_json(artist), json=json)


def artist_json(artist: "ArtistRow") -> JSON:
    """Return an artist as JSON for the output of `--json`."""
    return {"id": artist.id, "name": artist.name, "verified": bool(artist.verified), "manager_id": artist.manager_id}
