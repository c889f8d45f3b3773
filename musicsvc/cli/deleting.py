"""`musicsvc user export` and `musicsvc user delete`: write all data of an account to a file, and delete the account."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from musicsvc.cli import output, overwriting
from musicsvc.cli.options import AsJson, Email, Yes, option
from musicsvc.cli.output_file import STDOUT, open_output
from musicsvc.cli.session import Session, once
from musicsvc.errors import Conflict, Failure
from musicsvc.server.shapes import personal_data
from musicsvc.store import models
from musicsvc.store.accounts import users
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine import store as stores
from musicsvc.store.people import deletion

Out = Annotated[Path, option("FILE", "The output file; - is stdout.", "--output", "-o")]
ExportTo = Annotated[
    Path | None, option("FILE", "Where to write the data first [default: account-ID.json].", "--output", "-o")
]
NoExport = Annotated[bool, typer.Option("--no-export", help="Delete without writing the data to a file.")]
ArtistsTo = Annotated[str | None, option("EMAIL", "The account that manages its artists from then on.", "--artists-to")]
STAYS = "Its plays stay in all figures, for a listener without a name. There is no undo."


def export(context: typer.Context, email: Email = "", out: Out = STDOUT) -> None:
    """Write all data of an account as JSON, without secrets."""
    session = Session.from_context(context)
    with session.store() as store:
        user = store.read(lambda: users.by_email(email)).result()
        _write(session, store, user, out)


def delete(
    context: typer.Context,
    email: Email = "",
    artists_to: ArtistsTo = None,
    out: ExportTo = None,
    no_export: NoExport = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Delete an account with all that belongs to it alone. Its plays stay in all figures, without its name.

    The command first shows what it will delete, asks, and writes the data to a file. An account that manages artists
    is refused unless `--artists-to` names their next manager, or `artist assign --all-of` moved them.
    """
    if out is not None and (no_export or (json and out == STDOUT)):
        raise typer.BadParameter("--output cannot be used with --no-export, nor - with --json.")
    session, now = Session.begin(context)
    with session.store() as store:
        user, manager = _find(store, email, artists_to)
        about = f"{user.email} (account {user.id})"
        goes = deletion.describe(store.read(lambda: deletion.count_belongings(user)).result())
        session.echo(f"This deletes {about}{goes and f' with {goes}'}. {STAYS}")
        if manager is not None:
            session.echo(f"Its artists go to {manager.email}.")
        if not yes and not sys.stdin.isatty():
            raise Failure(f"This deletes {about}. To confirm this without a terminal, add --yes.")
        if not yes:
            typer.confirm(f"Delete {about}?", abort=True, err=True)
        file = None if no_export else out or _unused(user)
        if file is not None:
            _write(session, store, user, file)
        unit = partial(deletion.delete, user.id, artists_to=manager, now=now)
        deleted = store.write(unit).result()
        overwriting.wait(session, store)
    written = None if file is None else str(file)
    result = {"id": user.id, "email": user.email, "deleted": deleted, "export": written}
    output.print_result(session, f"{about} is deleted.", result, json=json)


def _find(store: stores.Store, email: str, artists_to: str | None) -> tuple[models.User, models.User | None]:
    """Return the account, and the next manager of its artists. Raises Failure if the account cannot be deleted."""

    def unit() -> tuple[models.User, models.User | None]:
        user, manager = users.by_email(email), None if artists_to is None else users.by_email(artists_to)
        deletion.check(user, assigned=manager is not None)
        return user, manager

    try:
        return store.read(unit).result()
    except Conflict as conflict:
        hint = f" Add --artists-to EMAIL, or run: musicsvc artist assign --all-of {email} EMAIL"
        raise Failure(conflict.message + hint * ("artists" in conflict.message)) from None


def _unused(user: models.User) -> Path:
    file = Path(f"account-{user.id}.json")
    if file.exists():
        raise Failure(f"{file} exists. Name another file with --output, or add --no-export.")
    return file


def _write(session: Session, store: stores.Store, user: models.User, out: Path) -> None:
    settings, now = session.settings(), session.clock.now()
    with activity_log.build(settings.store_url, settings.activity.file) as log, open_output(out) as file:
        known = log if log.open_existing() else None
        store.read(once(lambda: file.writelines(personal_data.pieces(user, known, now)))).result()
    if out != STDOUT:
        session.echo(f"Wrote the data of {user.email} to {out}.")
