"""`musicsvc artist`: the manager and the verified badge of artists."""

from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli import output
from musicsvc.cli.command import group
from musicsvc.cli.options import AsJson, Email, identifier
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
    """Make an account the manager of an artist, in place of the former one."""
    from musicsvc.store.accounts import users
    from musicsvc.store.catalog import artists

    session = Session.from_context(context)
    artist = session.write(lambda: artists.assign(artist_id, users.by_email(email)))
    _tell(session, artist, f"{artist.name} (artist {artist.id}) is managed by {email}.", json=json)


@app.command()
def verify(
    context: typer.Context,
    artist_id: ArtistId,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the badge.")] = False,
    json: AsJson = False,
) -> None:
    """Give an artist the verified badge."""
    from musicsvc.store.catalog import artists

    session = Session.from_context(context)
    artist = session.write(lambda: artists.verify(artist_id, verified=not undo))
    state = "verified" if artist.verified else "not verified"
    _tell(session, artist, f"{artist.name} (artist {artist.id}) is {state}.", json=json)


def _tell(session: Session, artist: "ArtistRow", message: str, *, json: bool) -> None:
    session.echo(message)
    if json:
        shown = ("id", "name", "verified", "manager_id")
        output.print_json({key: getattr(artist, key) for key in shown})
