"""Limits on the size of albums in an import. A row that would make its album exceed a limit is refused."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from musicsvc.store.catalog import sizes
from musicsvc.store.catalog.sizes import EMPTY, AlbumSize
from musicsvc.store.importing.catalog.rows import CatalogRow
from musicsvc.store.importing.summary import Refusal


class BoundsExceededError(Exception):
    """Some rows of a batch would make an album exceed its limits. `refused`: these rows by line number."""

    def __init__(self, refused: Mapping[int, Refusal]) -> None:
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Placement:
    """A track's album id (None without album), and the size that the track adds to the album."""

    album: int | None = None
    size: AlbumSize = EMPTY


@dataclass(slots=True)
class AlbumBounds:
    """Adds up the sizes of the albums that a batch changes, and refuses rows that would make an album too large.

    If `strict` is set, all rows of the album after a refused row are refused too.
    """

    strict: bool = False
    albums: dict[int, AlbumSize] = field(default_factory=dict)  # by id
    growth: dict[int, AlbumSize] = field(default_factory=dict)  # of the album itself, without its tracks, by line
    refused: dict[int, Refusal] = field(default_factory=dict)  # by line
    _artists: dict[int, int] = field(default_factory=dict)
    _full: dict[int, str] = field(default_factory=dict)  # the limit that each album exceeded

    def load_artists(self, ids: Iterable[int], names: Mapping[str, int]) -> None:
        """Load the JSON sizes of artists. `names` (name → id) serves for artists that only a dry run created."""
        missing = set(ids) - self._artists.keys()
        stored = {artist_id for artist_id in missing if artist_id > 0}
        self._artists |= sizes.measure_artists(stored)
        self._artists |= {each: sizes.new_artist(name) for name, each in names.items() if each in missing - stored}

    def artists(self, ids: Iterable[int]) -> int:
        return sum(self._artists[artist_id] for artist_id in ids)

    def measure_track(self, values: Mapping[str, Any]) -> Placement:
        """Return the album of a track with these `values`, and the size that the track adds to the album."""
        if values["album"] is None:
            return Placement()
        image = values["image"]
        own = sizes.TRACK + sum(sizes.measure_text(values[name]) for name in ("name", "release_date", "description"))
        own += self.artists(values["artists"]) + (0 if image is None else sizes.measure_text(image))
        return Placement(values["album"], AlbumSize(1, int(image is None), own, 0))

    def apply(self, row: CatalogRow, album: int | None, before: Placement, after: Placement) -> None:
        """Add the changes of the row's track (`before`, `after`) and album to the album sizes, or refuse the row.

        The row is refused if an album would become too large.
        """
        changes = {} if after.album is None else {after.album: after.size}
        if before.album is not None:
            changes[before.album] = changes.get(before.album, EMPTY).minus(before.size)
        if album is not None and row.line in self.growth:
            changes[album] = changes.get(album, EMPTY).plus(self.growth[row.line])
        sizes_after = {each: self.albums[each].plus(change) for each, change in changes.items()}
        for each, new in sizes_after.items():
            old = self.albums[each]
            if new.excess and (new.tracks > old.tracks or new.total > old.total):
                self._full[each] = new.excess
            elif not (self.strict and each in self._full):
                continue
            reason = self._full[each]
            names = (row.album,) if row.album is not None and each == album else ()
            self.refused[row.line] = Refusal(row.line, reason[0].lower() + reason[1:].rstrip("."), names)
            return
        self.albums |= sizes_after
