"""Wait until nothing of erased rows is left in the files of the database."""

from __future__ import annotations

from musicsvc.cli.session import Session
from musicsvc.store.engine import store as stores

SECONDS = 120.0
LEFT = (
    "Warning: the database file may still contain what was erased: a program has read an older state for more than two"
    " minutes. The next command that erases or deletes overwrites it."
)


def wait(session: Session, store: stores.Store) -> None:
    """Wait until the files are overwritten, or warn."""
    if not store.overwritten(SECONDS):
        session.echo(LEFT, always=True)
