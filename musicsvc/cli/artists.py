"""`musicsvc artist`: who manages an artist, and whether it is verified."""

from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli import output
from musicsvc.cli.output import AsJson
from musicsvc.cli.session import Session
from musicsvc.cli.users import Email

if TYPE_CHECKING:
    from musicsvc.store.catalog.artists import ArtistRow

app = typer.Typer(help="Artists: their managers and their mark of being verified.", no_args_is_help=True)

Id = Annotated[int, typer.Argument(metavar="ARTIST_ID", min=1, max=2**63 - 1, help="The artist's id.")]


@app.command()
def assign(context: typer.Context, artist_id: Id, email: Email, json: AsJson = False) -> None:
    """Make an account the manager of an artist."""
    from musicsvc.store.accounts import users
    from musicsvc.store.catalog import artists

    session = Session.from_context(context)
    artist = session.write(lambda: artists.assign(artist_id, users.by_email(email)))
    _tell(session, artist, f"{artist.name} (artist {artist.id}) is managed by {email}.", json=json)


@app.command()
def verify(
    context: typer.Context,
    artist_id: Id,
    undo: Annotated[bool, typer.Option("--undo", help="Take the mark back.")] = False,
    json: AsJson = False,
) -> None:
    """Mark an artist as verified."""
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
