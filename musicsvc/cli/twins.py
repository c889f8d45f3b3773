"""Warn before an import of artists that exist under several managers, and say what to do."""

from typing import TYPE_CHECKING

from musicsvc.cli.session import Session
from musicsvc.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from musicsvc.store.engine.store import Store
    from musicsvc.store.importing.catalog import CatalogOptions
    from musicsvc.store.importing.records import Reader

MOST_MANAGERS = 3


def warn_of_catalog(
    session: Session, file: "Path", open_file: "Callable[[], Reader]", options: "CatalogOptions", store: "Store"
) -> None:
    """Warn if artists of a catalog file exist under another manager. A file that is a pipe can be read only once."""
    from musicsvc.store.importing import twins

    found = twins.of_catalog(open_file, options, store) if file.is_file() else None
    if found is None or not found.names:
        return
    most = found.managers.most_common(MOST_MANAGERS)
    others = ", ".join(f"{email or 'no manager'}: {count:,}" for email, count in most)
    owner = most[0][0]
    existing = f"with --user {owner}" if owner else "without --user"
    session.echo(
        f"Warning: {quantity(found.names, 'artist')} of this file {_have(found.names)} a twin under another manager"
        f" ({others}). The import keeps both apart, with tracks of their own. To use the existing ones, import"
        f" {existing}, or hand them over before: musicsvc artist assign ID EMAIL. musicsvc import undo takes this"
        " import back."
    )


def warn_of_plays(session: Session, store: "Store") -> None:
    """Warn if artists of the catalog exist under several managers."""
    from musicsvc.store.importing import twins

    if names := twins.of_all(store):
        session.echo(
            f"Warning: {quantity(names, 'artist')} of the catalog {_have(names)} a twin under another manager. Plays"
            " that name their track by artist and title count for that of --user, otherwise for the oldest; plays that"
            " were imported before are found again wherever they are. To choose, add --user EMAIL, or name tracks by"
            " external_id, isrc or track_id."
        )


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
