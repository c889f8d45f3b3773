"""Find or create the artists of a catalog import. Only the manager's artists are searched, by exact name."""

from collections.abc import Iterable, Sequence

from musicsvc.store.engine import bulk, dialect
from musicsvc.store.importing.catalog.batch import Batch, ImportScope
from musicsvc.store.importing.catalog.rows import CatalogRow
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Artist


def resolve(rows: Sequence[CatalogRow], batch: Batch) -> dict[str, int]:
    """Find or create the artists that the rows name, and count the artists in `batch.counts`. Return ids by name."""
    names = list(dict.fromkeys(name for row in rows for name in (*row.artists, *row.album_artists)))
    found = batch.memory.artists | _find(names, batch.scope)
    missing = [name for name in names if name not in found]
    batch.new_artists = _create(missing, batch)
    batch.counts["artists"].new += len(missing)
    batch.counts["artists"].repeated += sum(len(row.artists) for row in rows) - len(missing)
    return found | batch.new_artists


def _find(names: Iterable[str], scope: ImportScope) -> dict[str, int]:
    found: dict[str, int] = {}
    managed = Artist.manager.is_null() if scope.manager is None else Artist.manager == scope.manager
    for some in dialect.batches(list(names)):
        query = Artist.select(Artist.name, Artist.id).where(managed, Artist.name.in_(some)).order_by(Artist.id)
        for name, artist_id in query.tuples().iterator():
            found.setdefault(name, artist_id)
    return found


def _create(names: Sequence[str], batch: Batch) -> dict[str, int]:
    if batch.scope.dry_run:
        return {name: batch.next_dry_run_id() for name in names}
    created = dict(zip(names, bulk.ids(Artist, len(names)), strict=True))
    rows = [(artist_id, name, batch.scope.manager, batch.scope.now) for name, artist_id in created.items()]
    bulk.insert(Artist, ("id", "name", "manager", "created_at"), rows)
    runs.made(batch.scope.run, Artist, list(created.values()))
    return created
