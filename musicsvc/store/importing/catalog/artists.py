"""Find or create the artists of a catalog import. Only the manager's artists are searched, by exact name.

An artist also has the names of those that were merged into it.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from peewee import SQL, fn

from musicsvc.store.catalog import album_sizes
from musicsvc.store.catalog.merged import ARTIST
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.catalog.rows import CatalogRow
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Artist, Merged


class Artists:
    """The artists that the rows of a batch name. Missing ones have ids too, and are created if a row needs them."""

    def __init__(self, rows: Sequence[CatalogRow], manager: int | None) -> None:
        names = dict.fromkeys(name for row in rows for name in (*row.artists, *row.album_artists))
        found = {row[0]: row[1:] for row in _find(names, manager or 0)}
        self._manager = manager
        self._missing = [name for name in names if name not in found]
        self._needed: set[str] = set()
        self._named = 0
        missing = dict(zip(self._missing, bulk.ids(Artist, len(self._missing)), strict=True))
        self.ids = {name: artist_id for name, (artist_id, *_) in found.items()} | missing
        self._images = {artist_id: image for artist_id, _, image in found.values()}
        self._names = {artist_id: name for artist_id, name, _ in found.values()}
        self._names |= {artist_id: name for name, artist_id in missing.items()}
        self._sizes: dict[int, int] = {}
        self._credits: dict[tuple[str, ...], tuple[int, ...]] = {}

    def of(self, names: tuple[str, ...]) -> tuple[int, ...]:
        if names not in self._credits:
            self._credits[names] = tuple(dict.fromkeys(map(self.ids.__getitem__, names)))
        return self._credits[names]

    def need(self, row: CatalogRow) -> None:
        """Count the artists that the row names, and create those of them that are missing."""
        self._needed.update(row.artists, row.album_artists)
        self._named += len(row.artists)

    def size(self, ids: Iterable[int]) -> int:
        """Return the bytes that artists take in the JSON of an album or track."""
        ids = list(ids)
        others = [each for each in ids if each not in self._names]
        if others:
            for artist_id, name, image in _by_id(others):
                self._names[artist_id], self._images[artist_id] = name, image
        for each in ids:
            if each not in self._sizes:
                self._sizes[each] = album_sizes.of_artist(self._names[each], self._images.get(each))
        return sum(self._sizes[each] for each in ids)

    def save(self, run: int, now: int) -> Counts:
        """Create the missing artists that rows need, and return the counts of the batch."""
        rows = [(self.ids[name], name, self._manager, now) for name in self._missing if name in self._needed]
        bulk.insert(Artist, ("id", "name", "manager", "created_at"), rows)
        runs.made(run, Artist, [row[0] for row in rows])
        return Counts(new=len(rows), repeated=self._named - len(rows))


@compiled
def _find(names: Collection[str], manager: int) -> Any:
    """Select name, id, today's name and image of the manager's artists. Those of today and the oldest come last."""
    own = Artist.select(Artist.name.alias("name"), Artist.id.alias("artist"), SQL("0").alias("former"))
    former = Merged.select(Merged.name, Merged.into, SQL("1")).where(Merged.kind == ARTIST, Merged.name.in_(names))
    named = own.where(Artist.name.in_(names)).union_all(former).alias("named")
    found = Artist.alias()
    query = named.select_from(named.c.name, found.id, found.name, found.image_small)
    query = query.join(found, on=found.id == named.c.artist).where(fn.coalesce(found.manager, 0) == manager)
    return query.order_by(named.c.former.desc(), found.id.desc())


@compiled
def _by_id(ids: Collection[int]) -> Any:
    return Artist.select(Artist.id, Artist.name, Artist.image_small).where(Artist.id.in_(ids))
