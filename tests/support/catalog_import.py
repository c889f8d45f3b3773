"""Imports of rows of a catalog, and the rows of the store after them."""

from pathlib import Path
from typing import Any

from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Genre,
    Tag,
    Track,
    TrackArtist,
    TrackGenre,
    TrackTag,
)
from tests.support.import_files import Rows, import_file


def import_rows(store: Store, file: Path, rows: Rows, **options: Any) -> ImportSummary:
    return import_file(store, file, Catalog(ImportOptions(**options)), rows, now=7)


def counts(summary: ImportSummary, kind: str = "tracks") -> tuple[int, int, int, int]:
    found = summary.counts[kind]
    return found.new, found.changed, found.repeated, found.refused


def dump(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    tables = (Artist, Album, AlbumArtist, Track, TrackArtist, Genre, TrackGenre, Tag, TrackTag)
    return store.read(
        lambda: {table.__name__: sorted(table.select().tuples().iterator(), key=str) for table in tables}
    ).result()


def only(store: Store, table: Any) -> Any:
    (found,) = store.read(lambda: list(table.select())).result()
    return found
