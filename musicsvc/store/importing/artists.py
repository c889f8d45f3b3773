"""Artists of an import: the same by exact name, among those of one manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.store.engine import bulk, dialect
from musicsvc.store.models import Artist

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from musicsvc.store.importing.batch import Batch, Scope
    from musicsvc.store.importing.rows import Row


def resolve(rows: Sequence[Row], batch: Batch) -> dict[str, int]:
    """The ids of the artists by name, those that are missing made; every mention is counted."""
    names = list(dict.fromkeys(name for row in rows for name in row.artists))
    found = batch.memory.artists | _find(names, batch.scope)
    missing = [name for name in names if name not in found]
    batch.new_artists = _make(missing, batch)
    batch.counts["artists"].new += len(missing)
    batch.counts["artists"].repeated += sum(len(row.artists) for row in rows) - len(missing)
    return found | batch.new_artists


def _find(names: Iterable[str], scope: Scope) -> dict[str, int]:
    found: dict[str, int] = {}
    managed = Artist.manager.is_null() if scope.manager is None else Artist.manager == scope.manager
    for some in dialect.batches(list(names)):
        query = Artist.select(Artist.name, Artist.id).where(managed, Artist.name.in_(some)).order_by(Artist.id)
        for name, artist_id in query.tuples().iterator():
            found.setdefault(name, artist_id)
    return found


def _make(names: Sequence[str], batch: Batch) -> dict[str, int]:
    if batch.scope.dry_run:
        return {name: batch.dry_id() for name in names}
    made = dict(zip(names, bulk.ids(Artist, len(names)), strict=True))
    rows = [(artist_id, name, batch.scope.manager, batch.scope.now) for name, artist_id in made.items()]
    bulk.insert(Artist, ("id", "name", "manager", "created_at"), rows)
    return made
