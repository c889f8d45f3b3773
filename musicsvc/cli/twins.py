"""Warn before an import if there are artists of the same name with different managers, and say what to do."""

from __future__ import annotations

from collections.abc import Callable

from musicsvc.store.editing import twins
from musicsvc.store.engine import store as stores
from musicsvc.store.importing import runner
from musicsvc.store.importing.catalog import catalog
from musicsvc.store.importing.files import records
from musicsvc.wording import quantity

MOST_MANAGERS = 3


def warn_of_catalog(
    options: runner.ImportOptions, store: stores.Store, open_file: Callable[[], records.Reader]
) -> str | None:
    """Return a warning if artists of a catalog file already exist with another manager."""
    found = catalog.artists_of_others(open_file, options, store)
    if not found.names:
        return None
    most = found.managers.most_common(MOST_MANAGERS)
    others = ", ".join(f"{email or 'no manager'}: {count:,}" for email, count in most)
    owner = most[0][0]
    existing = f"with --user {owner}" if owner else "without --user"
    return (
        f"Warning: {quantity(found.names, 'artist')} of this file {_exist(found.names)} under another manager too"
        f" ({others}). The import creates new artists with the same names. To use the existing ones, import"
        f" {existing}, or first assign them to another manager: musicsvc artist assign ID EMAIL."
    )


def warn_of_plays(store: stores.Store, _: Callable[[], records.Reader]) -> str | None:
    """Return a warning if the catalog has artists of the same name with different managers."""
    names = store.read(twins.under_several).result()
    if not names:
        return None
    return (
        f"Warning: {quantity(names, 'artist')} of the catalog {_exist(names)} under several managers. A play that"
        " names its track by artist and title counts for the artist that --user manages, otherwise for the oldest."
        " A play that was imported before is not counted again. To choose, add --user EMAIL, or name tracks by"
        " external_id, isrc or track_id."
    )


def _exist(number: int) -> str:
    return "exists" if number == 1 else "exist"
