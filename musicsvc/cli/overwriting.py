"""Wait until nothing of erased rows is left in the files of the database."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from musicsvc.cli.session import Session
    from musicsvc.store.engine.store import Store

SECONDS = 120.0
LEFT = (
    "Warning: the database file may still contain what was erased: a program has read an older state for more than two"
    " minutes. The next command that erases or deletes overwrites it."
)


def wait(session: "Session", store: "Store") -> None:
    """Wait until the files are overwritten, or warn."""
    if not store.overwritten(SECONDS):
        session.echo(LEFT, always=True)
