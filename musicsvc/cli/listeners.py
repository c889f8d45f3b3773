"""`musicsvc listener`: erase the names of listeners."""

import sys
from typing import Annotated

import typer

from musicsvc.cli import output, overwriting
from musicsvc.cli.options import AsJson, Yes, group
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.store.people import deletion

app = group("listener erase fan-7 --yes", "listener erase fan-8 --yes --json")


@app.command()
def erase(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="The listener, as API clients and imports name it in plays.", show_default=False
        ),
    ],
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Replace the name of a listener by a random one. Its plays and all figures stay.

    Later plays with this name are those of a new listener. There is no undo; older backups still have the name.
    """
    session, now = Session.begin(context)
    if not yes and not sys.stdin.isatty():
        raise Failure("This erases the name of a listener. To confirm this without a terminal, add --yes.")
    if not yes:
        typer.confirm(f"Erase the listener {name}? There is no undo.", abort=True, err=True)
    with session.store() as store:
        erased = store.write(lambda: deletion.erase_listener(name, now=now)).result()
        overwriting.wait(session, store)
    message = f"The listener {name} is erased. Figures stay; older backups still have the name."
    output.print_result(session, message, {"listener_id": erased}, json=json)
