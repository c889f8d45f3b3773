"""`musicsvc artist`: split them, set the manager and the verified badge; the other commands are in `catalog.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from musicsvc.cli import output
from musicsvc.cli.catalog import add_commands
from musicsvc.cli.options import Yes, argument, flag, group, one_account, option, refuse, row
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.errors import Invalid
from musicsvc.server.schemas import editing
from musicsvc.store.accounts import users
from musicsvc.store.catalog import artists
from musicsvc.store.editing import assignments, merging, splitting
from musicsvc.wording import quantity

app = group(
    "artist assign --all-of ada@example.test eve@example.test",
    'artist merge "Clara Wieck" 7 --dry-run',
    'artist split "Clara & Robert" --into Clara --into Robert --dry-run',
)

add_commands(app, "artist")

ArtistId = Annotated[int, row("artist", "ARTIST_ID")]
MovedId = Annotated[int | None, row("artist", "ARTIST_ID")]
NewManager = Annotated[str, argument("EMAIL", "The new manager.")]
AllOf = Annotated[
    tuple[str, str] | None,
    option("FROM TO", "Move all artists that the account FROM manages to the account TO (e-mails).", "--all-of"),
]

Into = Annotated[
    list[str],
    option("NAME", "One of the artists: a name, or the id of one that exists. Once for each, in order.", "--into"),
]
Unit = Callable[[], "splitting.Split"]
SplitDryRun = Annotated[bool, flag("Show what the parts would get, and change nothing.", "--dry-run")]


@app.command()
def split(
    session: Session, chosen: Annotated[int, row("artist")], into: Into, dry_run: SplitDryRun = False, yes: Yes = False
) -> None:
    """Split an artist into two or more others, which take its place on tracks and albums.

    Plays count for each of them. Artists that its manager lacks are created. Imports find them by the name of the one
    that was split, too. There is no undo.
    """
    refuse({"--into": editing.fault_of_parts(into, now=session.now)})
    found = _split(session.read, lambda: splitting.preview(chosen, into))
    about, gains = splitting.about(found), f"Each gets {', '.join(found.gains) or 'nothing'}."
    if dry_run:
        output.print_result(session, f"This would split {about}. {gains}", _split_json(found))
        return
    if not yes:
        session.confirm(f"splits {about}", f"Split {about}?", hint=f"{gains} {merging.NO_UNDO}")
    parts = [part.text for part in found.into]
    done = _split(session.write, lambda: splitting.split(chosen, parts, now=session.now))
    output.print_result(session, f"Split {splitting.about(done)}.", _split_json(done))


def _split(run: Callable[[Unit], splitting.Split], unit: Unit) -> splitting.Split:
    """Run a unit. Raises Invalid with the name of the option."""
    try:
        return run(unit)
    except Invalid as failure:
        raise Invalid({f"--{name}": fault for name, fault in failure.errors.items()}) from None


def _split_json(found: splitting.Split) -> JSON:
    """Return a split as JSON. Artists that do not exist yet have no id."""
    return found._asdict() | {"into": [part._asdict() for part in found.into]}


@app.command()
def assign(session: Session, artist_id: MovedId = None, email: NewManager = "", all_of: AllOf = None) -> None:
    """Assign an artist, or all artists of an account, to another account."""
    if all_of is not None:
        if artist_id is not None or email or session.user:
            raise typer.BadParameter("--all-of takes two accounts and nothing else: --all-of FROM TO.")
        former, manager = all_of
        moved = session.write(
            lambda: assignments.assign_all(users.by_email(former), users.by_email(manager), now=session.now)
        )
        message = f"{quantity(moved, 'artist')} moved from {former} to {manager}."
        output.print_result(session, message, {"from": former, "to": manager, "artists": moved})
        return
    if artist_id is None:
        raise typer.BadParameter("Name an artist and an account (ARTIST_ID EMAIL), or use --all-of FROM TO.")
    email = one_account(session, email)
    artist = session.write(lambda: assignments.assign(artist_id, users.by_email(email), now=session.now))
    message = f"{artist.name} (artist {artist.id}) is managed by {email}."
    output.print_result(session, message, artist_json(artist))


@app.command()
def verify(
    session: Session,
    artist_id: ArtistId,
    undo: Annotated[bool, flag("Remove the verified badge.", "--undo")] = False,
) -> None:
    """Give an artist the verified badge."""
    artist = session.write(lambda: artists.verify(artist_id, verified=not undo, now=session.now))
    state = "verified" if artist.verified else "not verified"
    output.print_result(session, f"{artist.name} (artist {artist.id}) is {state}.", artist_json(artist))


def artist_json(artist: artists.ArtistRow) -> JSON:
    return {"id": artist.id, "name": artist.name, "verified": bool(artist.verified), "manager_id": artist.manager_id}
