"""Tags: free text, identified by exact spelling."""

from collections.abc import Iterable, Sequence

from musicsvc.store.engine.sql import batches
from musicsvc.store.models import Tag


def ensure(names: Iterable[str]) -> dict[str, int]:
    """Create the tags that do not exist. Return name → id of all tags in `names`."""
    wanted = list(dict.fromkeys(name.strip() for name in names))
    found = find(wanted)
    # Sorted, so that two transactions that insert the same tags wait for each other without a deadlock.
    missing = sorted(set(wanted) - set(found))
    if missing:
        Tag.insert_many([{"name": name} for name in missing]).on_conflict_ignore().execute()
        found |= find(missing)
    return found


def find(names: Sequence[str]) -> dict[str, int]:
    """Return name → id of the tags that exist. Other names are omitted."""
    found: dict[str, int] = {}
    for some in batches(names):
        found.update(Tag.select(Tag.name, Tag.id).where(Tag.name.in_(some)).tuples().iterator())
    return found
