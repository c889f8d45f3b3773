"""Tags: free words; two are the same when they are spelled the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.store.engine.dialect import batches
from musicsvc.store.models import Tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def ensure(names: Iterable[str]) -> dict[str, int]:
    """The ids of these tags by name, those that are missing made."""
    wanted = list(dict.fromkeys(name.strip() for name in names))
    found = find(wanted)
    # In one order everywhere, so that two writers of the same new tags wait for each other instead of locking up.
    missing = sorted(set(wanted) - set(found))
    if missing:
        Tag.insert_many([{"name": name} for name in missing]).on_conflict_ignore().execute()
        found |= find(missing)
    return found


def find(names: Sequence[str]) -> dict[str, int]:
    """The ids of those that there are, by name."""
    found: dict[str, int] = {}
    for some in batches(names):
        found.update(Tag.select(Tag.name, Tag.id).where(Tag.name.in_(some)).tuples().iterator())
    return found
