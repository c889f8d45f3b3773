"""`import catalog`: import artists, albums and tracks from a file."""

from collections.abc import Sequence
from typing import Any

from musicsvc.store.importing.catalog import room, rows
from musicsvc.store.importing.catalog.albums import Albums
from musicsvc.store.importing.catalog.artists import Artists
from musicsvc.store.importing.catalog.rows import CatalogRow
from musicsvc.store.importing.catalog.tracks import Tracks
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.runner import Kind, Outcome, RefusedError, Scope


class Catalog(Kind[CatalogRow]):
    """The import of a catalog. It remembers which fields of albums and tracks its rows have set, as bit masks."""

    name = "catalog"
    counted = ("artists", "albums", "tracks", "genres")
    refused_as = "tracks"
    fields = tuple(rows.FIELDS)
    several = rows.SEVERAL
    required = rows.REQUIRED

    def forget(self) -> None:
        self._albums: dict[int, int] = {}
        self._tracks: dict[int, int] = {}

    def parse(self, record: Record, cells: dict[str, list[Any]]) -> CatalogRow:
        return rows.parse(record.line, cells)

    def write(self, batch: Sequence[CatalogRow], scope: Scope) -> Outcome:
        artists = Artists(batch, scope.user)
        albums = Albums(self._albums, batch, artists, scope)
        tracks = Tracks(self._tracks, batch, artists, scope)
        albums.load_others(track.values["album"] for track in tracks.items.values())
        outcome = Outcome()
        for place, row in enumerate(batch):
            named = albums.compare(row) if row.album else None
            try:
                offer = tracks.compare(row, None if named is None else named.album.id)
                sizes = room.require(row, named, offer, albums.items, artists)
            except RefusedError as refused:
                refused.notes = tuple(note for note in row.notes if note == rows.IGNORED)
                outcome.refused[place] = refused
                continue
            artists.need(row)
            if named is not None:
                albums.take(row, named)
            tracks.take(row, offer)
            for album, size in sizes.items():
                albums.items[album].size = size
            outcome.notes.update(row.notes)
            outcome.notes["differing"] += offer.fields.differs or (named is not None and named.fields.differs)
        outcome.counts["artists"] = artists.save(scope.run, scope.now)
        albums.save()
        outcome.counts |= {"genres": tracks.save(), "albums": albums.counts, "tracks": tracks.counts}
        outcome.notes += tracks.notes
        outcome.remember = lambda: self._remember(albums, tracks)
        return outcome

    def _remember(self, albums: Albums, tracks: Tracks) -> None:
        self._albums.update((each.id, each.given) for each in albums.items.values() if each.given)
        self._tracks.update((each.id, each.given) for each in tracks.items.values() if each.given)
