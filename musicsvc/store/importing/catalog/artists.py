"""Find or create the artists of a catalog import, by the keys of their names among those of the manager.

An artist also has the names of those that were merged into it. The name of one that was split means its parts.
"""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

from peewee import SQL, fn

from musicsvc.store.catalog import album_sizes, merged
from musicsvc.store.catalog.merged import ARTIST
from musicsvc.store.engine import bulk, name_index
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.catalog.rows import CatalogRow
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Artist, Merged


class Artists:
    """The artists that the rows of a batch name. Missing ones have ids too, and are created if a row needs them."""

    def __init__(self, rows: Sequence[CatalogRow], manager: int | None) -> None:
        names = dict.fromkeys(name for row in rows for name in (*row.artists, *row.album_artists))
        keys = {name: name_key(name) for name in names}
        spelled = name_index.spellings(names)
        stored = _find(spelled, manager or 0)
        parts = merged.parts(spelled, manager or 0)
        exact = {row[0]: row[1:] for row in stored}
        alike = {name_key(row[0]): row[1:] for row in stored}
        missing = bulk.ids(Artist, len({*keys.values()} - alike.keys()))
        unused = iter(missing)
        for name, key in keys.items():
            if key not in alike:
                alike[key] = next(unused), name, None
        found = {name: exact.get(name) or alike[key] for name, key in keys.items()}
        self._manager = manager
        self._missing = {*missing}
        self._made: dict[int, str] = {}
        self._counts = Counts()
        self._ids = {name: [part.id for part in parts.get(keys[name], ())] or [found[name][0]] for name in names}
        self._images = {artist_id: image for artist_id, _, image in found.values()}
        self._names = {artist_id: name for artist_id, name, _ in found.values()}
        self._sizes: dict[int, int] = {}
        self._credits: dict[tuple[str, ...], tuple[int, ...]] = {}

    def of(self, names: tuple[str, ...]) -> tuple[int, ...]:
        if (found := self._credits.get(names)) is None:
            found = self._credits[names] = tuple(dict.fromkeys(chain.from_iterable(map(self._ids.__getitem__, names))))
        return found

    def need(self, row: CatalogRow) -> None:
        """Count the artists that the row names, and create those of them that are missing."""
        names = (*row.album_artists, *row.artists) if row.album_artists else row.artists
        named = {self._ids[name][0]: name for name in names}
        self._counts.repeated += len(named)
        for artist in self._missing.intersection(named):
            self._missing.remove(artist)
            self._made[artist] = named[artist]
            self._counts.new += 1
            self._counts.repeated -= 1

    def size(self, ids: Collection[int]) -> int:
        """Return the bytes that artists take in the JSON of an album or track."""
        sizes = self._sizes
        if missing := [each for each in ids if each not in sizes]:
            others = [each for each in missing if each not in self._names]
            for artist_id, name, image in _by_id(others) if others else ():
                self._names[artist_id], self._images[artist_id] = name, image
            for each in missing:
                sizes[each] = album_sizes.of_artist(self._names[each], self._images.get(each))
        return sum(map(sizes.__getitem__, ids))

    def save(self, run: int, now: int) -> tuple[Counts, list[str]]:
        """Create the missing artists that rows need. Return the counts of the batch, and their names."""
        rows = [(artist, name, self._manager, now) for artist, name in sorted(self._made.items())]
        bulk.insert(Artist, ("id", "name", "manager", "created_at"), rows)
        runs.made(run, Artist, [row[0] for row in rows])
        return self._counts, [row[1] for row in rows]


@compiled
def _find(names: Collection[str], manager: int) -> Any:
    """Select name, id, today's name and image of the manager's artists. Those of today and the oldest come last."""
    own = Artist.select(Artist.name.alias("name"), Artist.id.alias("artist"), SQL("0").alias("former"))
    former = Merged.select(Merged.name, Merged.into, SQL("1")).where(Merged.kind == ARTIST, Merged.former > 0)
    named = own.where(Artist.name.in_(names)).union_all(former.where(Merged.name.in_(names))).alias("named")
    found = Artist.alias()
    query = named.select_from(named.c.name, found.id, found.name, found.image_small)
    query = query.join(found, on=found.id == named.c.artist).where(fn.coalesce(found.manager, 0) == manager)
    return query.order_by(named.c.former.desc(), found.id.desc())


@compiled
def _by_id(ids: Collection[int]) -> Any:
    return Artist.select(Artist.id, Artist.name, Artist.image_small).where(Artist.id.in_(ids))
