"""`musicsvc user export`, `user delete` and `listener erase`: write all data of an account to a file, and delete it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from musicsvc.cli import output
from musicsvc.cli.options import Email, Out, Yes, argument, flag, group, option
from musicsvc.cli.output_file import STDOUT, open_output
from musicsvc.cli.session import Session, once
from musicsvc.errors import Conflict, Failure
from musicsvc.server.shapes import personal_data
from musicsvc.store import models
from musicsvc.store.accounts import users
from musicsvc.store.activity import log as activity_log
from musicsvc.store.editing import assignments
from musicsvc.store.engine import store as stores
from musicsvc.store.people import catalogs, deletion

ExportTo = Annotated[
    Path | None, option("FILE", "Where to write the data first [default: account-ID.json].", "--output", "-o")
]
NoExport = Annotated[bool, flag("Delete without writing the data to a file.", "--no-export")]
WithArtists = Annotated[
    bool, flag("Delete its artists, and their albums and tracks of nobody else, too.", "--with-artists")
]
ArtistsTo = Annotated[str | None, option("EMAIL", "The account that manages its artists from then on.", "--artists-to")]
STAYS = "Its plays stay in all figures, for a listener without a name. There is no undo."
listener_app = group("listener erase fan-7 --yes", "listener erase fan-8 --yes --json")
SECONDS = 120.0
LEFT = (
    "Warning: the database file may still contain what was erased: a program has read an older state for more than two"
    " minutes. The next command that erases or deletes overwrites it."
)


def export(session: Session, email: Email = "", out: Out = STDOUT) -> None:
    """Write all data of an account as JSON, without secrets."""
    with session.store() as store:
        user = store.read(lambda: users.by_email(email)).result()
        _write(session, store, user, out)


def delete(
    session: Session,
    email: Email = "",
    artists_to: ArtistsTo = None,
    with_artists: WithArtists = False,
    out: ExportTo = None,
    no_export: NoExport = False,
    yes: Yes = False,
) -> None:
    """Delete an account with all that belongs to it alone. Its plays stay in all figures, without its name.

    The command first shows what it will delete, asks, and writes the data to a file. An account that manages artists
    is refused unless `--artists-to` names their next manager, `--with-artists` deletes them, or `artist assign
    --all-of` moved them. The owner can hand them over to another account on the page `/settings/delete`.
    """
    if out is not None and (no_export or (session.json and out == STDOUT)):
        raise typer.BadParameter("--output cannot be used with --no-export, nor - with --json.")
    if with_artists and artists_to is not None:
        raise typer.BadParameter("--with-artists cannot be used with --artists-to.")
    with session.store() as store:
        user, manager = _find(store, email, artists_to, with_artists=with_artists)
        about = f"{user.email} (account {user.id})"
        goes = store.read(lambda: _describe(user, with_artists=with_artists)).result()
        session.echo(f"This deletes {about}{goes and f' with {goes}'}. {STAYS}")
        if manager is not None:
            session.echo(f"Its artists go to {manager.email}.")
        if not yes:
            session.confirm(f"deletes {about}", f"Delete {about}?")
        file = None if no_export else out or _unused(user)
        if file is not None:
            _write(session, store, user, file)
        tracks = _delete_tracks(session, store, user) if with_artists else 0
        unit = partial(deletion.delete, user.id, artists_to=manager, with_artists=with_artists, tracks=tracks)
        deleted = store.write(partial(unit, now=session.now)).result()
        _wait_until_overwritten(session, store)
    written = None if file is None else str(file)
    result = {"id": user.id, "email": user.email, "deleted": deleted, "export": written}
    output.print_result(session, f"{about} is deleted.", result)


@listener_app.command()
def erase(
    session: Session,
    name: Annotated[str, argument("KEY", "The listener, as API clients and imports name it in plays.")],
    yes: Yes = False,
) -> None:
    """Replace the name of a listener with a random one. Its plays and all figures stay.

    Later plays with this name are those of a new listener. There is no undo; older backups still have the name.
    """
    if not yes:
        session.confirm("erases the name of a listener", f"Erase the listener {name}? There is no undo.")
    with session.store() as store:
        erased = store.write(lambda: deletion.erase_listener(name, now=session.now)).result()
        _wait_until_overwritten(session, store)
    message = f"The listener {name} is erased. Figures stay; older backups still have the name."
    output.print_result(session, message, {"listener_id": erased})


def _delete_tracks(session: Session, store: stores.Store, user: models.User) -> int:
    """Delete the tracks that go with the artists of an account, some at a time. Return their number."""
    deleted = 0
    try:
        while some := store.write(partial(catalogs.delete_some, user.id)).result():
            deleted += some
    except KeyboardInterrupt:
        again = "Run the command again, with --no-export, to go on."
        session.echo(f"Interrupted. Some tracks of {user.email} may be deleted. {again}")
        raise
    return deleted


def _wait_until_overwritten(session: Session, store: stores.Store) -> None:
    if not store.overwritten(SECONDS):
        session.echo(LEFT, always=True)


def _describe(user: models.User, *, with_artists: bool) -> str:
    """Return what goes with the account, in words."""
    catalog = catalogs.count(user.id)
    goes = deletion.describe((catalog.goes if with_artists else {}) | deletion.count_belongings(user))
    stays = f"; what also belongs to artists of others stays: {catalog.kept}" if with_artists and catalog.kept else ""
    return f"{goes}{stays}"


def _find(
    store: stores.Store, email: str, artists_to: str | None, *, with_artists: bool
) -> tuple[models.User, models.User | None]:
    """Return the account, and the next manager of its artists. Raises Failure if the account cannot be deleted."""

    def unit() -> tuple[models.User, models.User | None]:
        user, manager = users.by_email(email), None if artists_to is None else users.by_email(artists_to)
        deletion.check(user, without_artists=with_artists or manager is not None)
        if manager is not None:
            assignments.require_two(user, manager)
        return user, manager

    try:
        return store.read(unit).result()
    except Conflict as conflict:
        hint = f" Add --artists-to EMAIL or --with-artists, or run: musicsvc artist assign --all-of {email} EMAIL"
        raise Failure(conflict.message + hint * ("artists" in conflict.message)) from None


def _unused(user: models.User) -> Path:
    file = Path(f"account-{user.id}.json")
    if file.exists():
        raise Failure(f"{file} exists. Name another file with --output, or add --no-export.")
    return file


def _write(session: Session, store: stores.Store, user: models.User, out: Path) -> None:
    settings, now = session.settings(), session.clock.now()
    with activity_log.build(settings.store_url, settings.activity.file) as log, open_output(out, 0o600) as file:
        known = log if log.open_existing() else None
        store.read(once(lambda: file.writelines(personal_data.pieces(user, known, now)))).result()
    if out != STDOUT:
        session.echo(f"Wrote the data of {user.email} to {out}.")
